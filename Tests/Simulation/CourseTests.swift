import FreshetPipelines
import FreshetTestKit
import Glibc
import Testing
import WorldTestSupport

/// Whatever happens to a machine in whatever order, what the witness looks for never is, and when all is well again
/// every pipeline comes to rest with a fresh copy.
///
/// A course is its seed: it takes the same way each time. `FRESHET_SEEDS=100-999` tries others.
@Suite("In any course of a machine's days", .ownThread)
struct CourseTests {
    static var seeds: ClosedRange<UInt64> {
        let words = getenv("FRESHET_SEEDS").map { String(cString: $0).split(separator: "-").compactMap { UInt64($0) } }
        guard let words, let first = words.first, let last = words.last, first <= last else { return 1...40 }
        return first...last
    }

    @Test("one run at a time, the copy is never lost, demands are followed, the origin is spared", arguments: seeds)
    func holds(_ seed: UInt64) throws {
        var course = try Course(seed)
        for _ in 0..<300 { try course.step() }
        try course.end()
    }
}

/// Throws dice over what happens next.
private struct Course {
    private let machine: Machine
    private var dice: Jitter
    private var isBooted = true
    private var version = 0
    private static let names = ["a", "b", "c", "d"]

    init(_ seed: UInt64) throws {
        dice = Jitter(seed: seed)
        machine = Machine([:], host: dice.next(), seed: dice.next())
        for name in Self.names {
            machine.origin(name).answers(good)
            machine.files["pipelines/\(name).yaml"] = file(name)
        }
        machine.files["freshet.yaml"] = "concurrency: 2\n"
        try machine.boot()
    }

    /// A pipeline's file by the dice.
    private mutating func file(_ name: String) -> String {
        var keys: [String] = []
        if Bool.random(using: &dice) { keys.append("every: \(Int.random(in: 1...120, using: &dice))min") }
        if Bool.random(using: &dice) { keys.append("min-interval: \(Int.random(in: 1...20, using: &dice))s") }
        if Bool.random(using: &dice) { keys.append("when-running: restart") }
        if Bool.random(using: &dice) { keys.append("deadline: 30s") }
        if Bool.random(using: &dice) { keys.append("fresh-for: 0") }
        if Int.random(in: 0..<4, using: &dice) == 0 { keys.append("quiet: 0") }
        if Int.random(in: 0..<4, using: &dice) == 0 { keys.append("on: [start, network]") }
        // Another way to the same origin: another product.
        let path = Int.random(in: 0..<4, using: &dice) == 0 ? "https://\(name).example.com/other" : nil
        return pipeline(name, keys.joined(separator: ", "), url: path, check: "type: text/plain")
    }

    private mutating func answer() -> ScriptedOrigin.Answer {
        version += 1
        let sound = ScriptedOrigin.Answer.content("good \(version % 7)", type: "text/plain", tag: "\"\(version)\"")
        switch Int.random(in: 0..<12, using: &dice) {
        case 0: return down()
        case 1: return down(retryAfter: .seconds(Int64.random(in: 1...4000, using: &dice)))
        case 2: return .fails(RunFailure(.refused, "403"))
        case 3: return .fails(RunFailure(.connection, "connection refused"))
        case 4: return .hangs(cleanUp: .zero)
        case 5: return .content("<html>captive</html>", type: "text/html")
        case 6: return .after(.milliseconds(Int64.random(in: 1...60_000, using: &dice)), sound)
        case 7: return .after(.seconds(2), down())
        default: return sound
        }
    }

    mutating func step() throws {
        let name = Self.names.randomElement(using: &dice) ?? "a"
        switch Int.random(in: 0..<24, using: &dice) {
        case 0, 1: try machine.network(nil)
        case 2, 3, 4:
            try machine.network(
                Bool.random(using: &dice) ? "home" : "office", signalFirst: Bool.random(using: &dice))
        case 5, 6: machine.origin(name).answers(answer())
        case 7: machine.disk.isFull(Bool.random(using: &dice))
        case 8: try machine.refresh(name)
        case 9: try machine.refresh(name, force: true)
        case 10: machine.flood(name, Int.random(in: 1...20, using: &dice))
        case 11:
            machine.files["pipelines/\(name).yaml"] =
                Int.random(in: 0..<5, using: &dice) == 0 ? nil : file(name)
            try machine.reload(configurationOnly: Bool.random(using: &dice))
        case 12: try machine.reload()
        case 13: try restart()
        case 14: try machine.hold(name, Bool.random(using: &dice))
        case 15, 16: try sleep()
        case 17: try machine.goesToSleep(Bool.random(using: &dice))
        case 18: try machine.stepClock(by: .seconds(Int64.random(in: -90_000...90_000, using: &dice)))
        case 19: try machine.pass(.seconds(Int64.random(in: 1...7200, using: &dice)))
        default: try machine.pass(.milliseconds(Int64.random(in: 0...8000, using: &dice)))
        }
    }

    /// The lid is closed for a while; with or without logind, and with a network that comes late.
    private mutating func sleep() throws {
        if Bool.random(using: &dice) { try machine.goesToSleep() }
        if Bool.random(using: &dice) { try machine.pass(.milliseconds(Int64.random(in: 0...900, using: &dice))) }
        machine.sleep(.seconds(Int64.random(in: 1...7200, using: &dice)))
        try machine.wake(factFirst: Bool.random(using: &dice))
        guard Bool.random(using: &dice) else { return }
        try machine.pass(.milliseconds(Int64.random(in: 0...1500, using: &dice)))
        try machine.network(nil)
        try machine.pass(.milliseconds(Int64.random(in: 100...6000, using: &dice)))
        try machine.network("home", signalFirst: Bool.random(using: &dice))
    }

    private mutating func restart() throws {
        try machine.stop()
        if Bool.random(using: &dice) { try machine.pass(.seconds(Int64.random(in: 1...600, using: &dice))) }
        try machine.boot()
    }

    /// All is well from now on.
    mutating func end() throws {
        machine.disk.isFull(false)
        for name in Self.names {
            let answer = ScriptedOrigin.Answer.content("good at last", type: "text/plain")
            machine.origin(name).answers(answer)
            machine.place.internet["https://\(name).example.com/other"].answers(answer)
            machine.files["pipelines/\(name).yaml"] = pipeline(name, "every: 1h", check: "type: text/plain")
            try machine.hold(name, false)
        }
        try machine.goesToSleep(false)
        try machine.reload()
        try machine.network("home")
        for name in Self.names { try machine.refresh(name, force: true) }
        try machine.pass(.seconds(2 * 3600))
        for name in Self.names {
            let status = try #require(machine.status(name))
            #expect(status.activity == .loaded, "\(name)")
            #expect(status.freshness == .fresh, "\(name)")
            #expect(machine.disk[name].text == "good at last")
        }
        #expect(machine.witness.unanswered == [])
        #expect(machine.place.internet.open == 0)
        #expect(machine.place.internet.mostOpen <= 2)
        #expect(machine.slots?.counts ?? (9, 9) == (0, 0))
        // A planned check each, and nothing else.
        #expect(machine.place.clock.manual.sleeperCount == Self.names.count)
        try machine.stop()
        #expect(machine.place.clock.manual.sleeperCount == 0)
        #expect(machine.witness.faults == [])
    }
}
