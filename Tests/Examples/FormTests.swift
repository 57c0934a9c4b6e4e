import FreshetSignals
import FreshetTestKit
import SignalExamples
import Testing

/// The quiet period is three frames, a server request takes two. `n` is no account; an account is shown as its name.
@Suite("Example: form")
struct FormTests {
    let stage = MarbleStage()
    let origin: Origin
    let form: Form

    init() {
        let origin = Origin(on: stage)
        self.origin = origin
        form = Form { name in
            try await origin.load(name, frames: 2)
            return name != "taken"
        }
    }

    func enter(_ name: String, at frame: Int) {
        stage.at(frame: frame) { form.name.value = name }
    }

    func enterPassword(_ password: String, repeated: String, at frame: Int) {
        stage.at(frame: frame) {
            form.password.value = password
            form.repetition.value = repeated
        }
    }

    func expect(_ expected: Marbles, consumer: Marbles = "") throws {
        let account = form.account(quiet: stage.frame * 3, clock: stage.clock)
        try stage.expect(account, expected, consumer: consumer) { $0?.name ?? "n" }
        #expect(stage.clock.sleeperCount == 0, "a sleeper is left")
    }

    @Test("there is an account while all fields are valid")
    func allRight() throws {
        enterPassword("long enough", repeated: "long enough", at: 1)
        enter("ada", at: 2)
        enterPassword("long enough", repeated: "other", at: 9)
        enterPassword("long enough", repeated: "long enough", at: 11)
        try expect("n------{ada}-n-{ada}---")
        #expect(origin.log == ["ada"], "a change of the password must not send a request")
    }

    @Test("after a change of the name there is no account until the new name is known to be free")
    func newName() throws {
        enterPassword("long enough", repeated: "long enough", at: 0)
        enter("ada", at: 0)
        enter("adal", at: 7)
        enter("taken", at: 14)
        try expect("n----{ada}-n----{adal}-n--------")
        #expect(origin.log == ["ada", "adal", "taken"])
    }

    @Test("the next name cancels a check in progress, and a name that is too short is not checked")
    func cancelledCheck() throws {
        enterPassword("long enough", repeated: "long enough", at: 0)
        enter("ada", at: 0)
        enter("ad", at: 4)
        enter("ada", at: 10)
        try expect("n--------------{ada}")
        #expect(origin.log == ["ada", "ada cancelled", "ada"])
    }

    @Test("a failed check makes no account, and the next name is checked")
    func failedCheck() throws {
        enterPassword("long enough", repeated: "long enough", at: 0)
        origin.takeDown("ada")
        enter("ada", at: 0)
        enter("bob", at: 7)
        try expect("n-----------{bob}")
    }

    @Test("a burst of changes is one check")
    func burst() throws {
        enterPassword("long enough", repeated: "long enough", at: 0)
        stage.at(frame: 1) {
            for number in 0..<1_000 { form.name.value = "name\(number)" }
        }
        try expect("n-----{name999}---")
        #expect(origin.log == ["name999"])
    }

    @Test("a cancelled consumer gets the end when the check has ended")
    func cancelled() throws {
        enter("ada", at: 0)
        try expect("n---|", consumer: "----!")
        #expect(origin.log == ["ada", "ada cancelled"])
    }
}
