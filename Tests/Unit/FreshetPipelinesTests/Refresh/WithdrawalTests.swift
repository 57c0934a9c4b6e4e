import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("The refresh machine and a copy that is to be withdrawn")
struct WithdrawalDialogueTests {
    private func dialogue(
        maxAge: Double? = 100, withdraws: Bool = true, lastCheck: Double? = -50, copy: CopyState? = CopyState(number: 1)
    ) -> Dialogue {
        Dialogue(
            RefreshPolicy(every: .seconds(3600), quiet: .zero, freshFor: .zero), lastCheck: lastCheck, maxAge: maxAge,
            withdraws: withdraws, copy: copy)
    }

    private func settings(_ maxAge: Double?, withdraws: Bool = true) -> RefreshSettings {
        RefreshSettings(
            policy: RefreshPolicy(every: .seconds(3600), quiet: .zero, freshFor: .zero), needsNetwork: true,
            maxAge: maxAge.map { .seconds($0) }, withdraws: withdraws)
    }

    /// The reported states of the copy.
    private func events(_ dialogue: Dialogue) -> [EngineEvent] {
        dialogue.events.filter {
            switch $0 {
            case .expired, .expiredNoMore, .withdrawn, .returned: true
            default: false
            }
        }
    }

    private let gone = CopyState(number: 1, isWithdrawn: true)

    @Test("It is withdrawn once, at the instant at which it expires, and only the withdrawal is reported")
    func expires() {
        let dialogue = dialogue()
        #expect(dialogue.pass(until: 49.9) == [])
        #expect(dialogue.pass(until: 60).map(\.output) == [.withdraws])
        #expect(events(dialogue) == [])
        #expect(dialogue.at(61, .copy(gone), .copySettled(.done)) == [])
        #expect(events(dialogue) == [.withdrawn(checked: Dialogue.instant(-50))])
        #expect(dialogue.freshness == .expired)
        #expect(dialogue.pass(until: 3000) == [])
        #expect(events(dialogue).count == 1)
    }

    @Test("A damaged copy is not published again, and the next copy is reported as its return")
    func damaged() {
        let dialogue = dialogue()
        #expect(dialogue.pass(until: 60).map(\.output) == [.withdraws])
        #expect(dialogue.at(61, .copyLost, .copySettled(.left)) == [])
        #expect(dialogue.pass(until: 3000) == [])
        // The store reports that.
        #expect(events(dialogue) == [])
        #expect(dialogue.at(3001, .receives("reload", at: 3001)) == [.starts(1, ["reload"])])
        #expect(
            dialogue.at(3002, .copy(CopyState(number: 1)), .ended(run: 1, .succeeded(changed: false, generation: 1)))
                == [])
        #expect(events(dialogue) == [.returned(isSame: true, causes: dialogue.orders.first?.causes)])
        #expect(dialogue.pass(until: 3110).map(\.output) == [.withdraws])
    }

    @Test("After a lost copy, a copy of a rollback stays for max-age from then, and no longer")
    func rolledBackAfterLoss() {
        let dialogue = dialogue()
        #expect(dialogue.pass(until: 60).map(\.output) == [.withdraws])
        #expect(dialogue.at(61, .copyLost, .copySettled(.left)) == [])
        #expect(dialogue.at(70, .copy(CopyState(number: 0, written: Dialogue.instant(70)))) == [])
        #expect(dialogue.pass(until: 169.9) == [])
        #expect(dialogue.pass(until: 180).map(\.output) == [.withdraws])
    }

    @Test("A lost copy is not reported as unexpired after a failed attempt that reported its expiry")
    func lostAfterFailure() {
        let dialogue = dialogue()
        #expect(dialogue.pass(until: 60).map(\.output) == [.withdraws])
        _ = dialogue.at(61, .copySettled(.failed))
        #expect(events(dialogue) == [.expired(checked: Dialogue.instant(-50))])
        #expect(dialogue.pass(until: 130).map(\.output) == [.withdraws])
        #expect(dialogue.at(131, .copyLost, .copySettled(.left)) == [])
        #expect(dialogue.pass(until: 3000) == [])
        #expect(events(dialogue).count == 1)
    }

    @Test("A successful check has published it again already: its causes are reported with it")
    func returns() {
        let dialogue = dialogue(lastCheck: -200, copy: gone)
        #expect(dialogue.at(1, .receives("reload", at: 1)) == [.starts(1, ["reload"])])
        #expect(
            dialogue.at(2, .copy(CopyState(number: 1)), .ended(run: 1, .succeeded(changed: false, generation: 1))) == []
        )
        let causes = dialogue.orders.first?.causes
        #expect(causes?.map(\.signal) == ["reload"])
        #expect(events(dialogue) == [.returned(isSame: true, causes: causes)])
        #expect(dialogue.freshness == .fresh)
        #expect(dialogue.pass(until: 103).map(\.output) == [.withdraws])
    }

    @Test("A check with new content makes another copy, which is reported")
    func replaced() {
        let dialogue = dialogue(lastCheck: -200, copy: gone)
        _ = dialogue.at(1, .receives("reload", at: 1))
        #expect(dialogue.at(2, .copy(CopyState(number: 2)), .succeeds(1)) == [])
        #expect(events(dialogue) == [.returned(isSame: false, causes: dialogue.orders.first?.causes)])
    }

    @Test("A copy that a run published stays until the end of the run is known")
    func concluding() {
        let dialogue = dialogue(lastCheck: -200, copy: gone)
        _ = dialogue.at(1, .receives("reload", at: 1))
        // It was published again, and another event comes before the end of that run is known.
        #expect(dialogue.at(2, .copy(CopyState(number: 1))) == [.withdraws])
        #expect(dialogue.at(2.1, .copySettled(.left)) == [])
        #expect(dialogue.at(3, .ended(run: 1, .succeeded(changed: false, generation: 1))) == [])
        #expect(dialogue.pass(until: 100) == [])
        #expect(!events(dialogue).contains { if case .expired = $0 { true } else { false } })
    }

    @Test("At the start the withdrawal is known: nothing is reported, and nothing done")
    func start() {
        let dialogue = dialogue(lastCheck: -200, copy: gone)
        #expect(dialogue.pass(until: 1000) == [])
        #expect(events(dialogue) == [])
        #expect(dialogue.freshness == .expired)
        let away = self.dialogue(lastCheck: -200)
        #expect(away.at(1) == [])
        #expect(away.machine.copy.withdrawal?.requested == true)
    }

    @Test("A pinned copy is not withdrawn; it is when it is unpinned")
    func pinned() {
        let dialogue = dialogue(copy: CopyState(number: 1, isPinned: true))
        #expect(dialogue.pass(until: 1000) == [])
        #expect(events(dialogue) == [.expired(checked: Dialogue.instant(-50))])
        #expect(dialogue.at(1001, .copy(CopyState(number: 1))) == [.withdraws])
        #expect(dialogue.at(1002, .copy(gone), .copySettled(.done)) == [])
        #expect(events(dialogue).dropFirst() == [.withdrawn(checked: Dialogue.instant(-50))])
    }

    @Test("A copy that the operator published stays for max-age from then, and is reported as expired")
    func chosen() {
        let dialogue = dialogue(lastCheck: -200, copy: gone)
        #expect(dialogue.at(10, .copy(CopyState(number: 1, written: Dialogue.instant(10)))) == [])
        #expect(
            events(dialogue) == [.returned(isSame: true, causes: nil), .expired(checked: Dialogue.instant(-200))])
        #expect(dialogue.pass(until: 109.9) == [])
        #expect(dialogue.pass(until: 111).map(\.output) == [.withdraws])
    }

    @Test("A copy that a partly failed run confirmed stays for max-age from then")
    func partial() {
        let dialogue = dialogue()
        _ = dialogue.at(40, .receives("reload", at: 40))
        let flaw = RunFailure(.connection, "a branch")
        _ = dialogue.at(41, .ended(run: 1, .succeeded(changed: false, generation: 1, flaw: flaw)))
        #expect(!dialogue.pass(until: 140.9).map(\.output).contains(.withdraws))
        #expect(dialogue.pass(until: 141).map(\.output).contains(.withdraws))
    }

    @Test("A wrong clock at the time of the file's write does not make it stay longer")
    func clock() {
        let dialogue = dialogue(lastCheck: 0, copy: CopyState(number: 1, written: Dialogue.instant(0)))
        let right = Dialogue.instant(-1000)
        let memory = StoredRefreshState(
            lastCheck: right, confirmed: right, hasGeneration: true, copy: CopyState(number: 1, written: right))
        #expect(dialogue.at(1, .clockStepped(memory)).contains(.withdraws))
    }

    @Test("Rejected content is not fetched for each signal because of that")
    func refused() {
        let dialogue = Dialogue(
            RefreshPolicy(every: .seconds(3600), quiet: .zero, freshFor: .seconds(600)), lastCheck: -200, maxAge: 100,
            withdraws: true, copy: gone)
        #expect(dialogue.at(1, .receives("resume", at: 1)) == [.starts(1, ["resume"])])
        var failure = RunFailure(.content, "a portal")
        failure.rejection = .lasting
        _ = dialogue.at(2, .ended(run: 1, .failed(failure)))
        #expect(dialogue.at(10, .receives("resume", at: 10)) == [])
        #expect(dialogue.at(11, .receives("reload", at: 11)) == [.starts(2, ["reload"])])
    }

    @Test("A reload without withdrawal, or with a longer max-age, publishes it again; one with withdrawal withdraws it")
    func reconfigured() {
        let dialogue = dialogue(lastCheck: -200, copy: gone)
        #expect(dialogue.at(1, .reconfigured(settings(100, withdraws: false), sameProduct: true)) == [.putsBack])
        #expect(dialogue.at(2, .copy(CopyState(number: 1)), .copySettled(.done)) == [])
        #expect(
            events(dialogue) == [.returned(isSame: true, causes: nil), .expired(checked: Dialogue.instant(-200))])
        #expect(dialogue.at(3, .reconfigured(settings(100), sameProduct: true)) == [.withdraws])
        #expect(dialogue.at(4, .copy(gone), .copySettled(.done)) == [])
        #expect(dialogue.at(5, .reconfigured(settings(1000), sameProduct: true)) == [.putsBack])
        #expect(dialogue.at(6, .copy(CopyState(number: 1)), .copySettled(.done)) == [])
        #expect(dialogue.pass(until: 799) == [])
        #expect(dialogue.pass(until: 801).map(\.output) == [.withdraws])
    }

    @Test("A copy that cannot be withdrawn is reported as still published, and retried a minute later")
    func fails() {
        let dialogue = dialogue()
        #expect(dialogue.pass(until: 50).map(\.output) == [.withdraws])
        #expect(dialogue.at(51, .copySettled(.failed)) == [])
        #expect(events(dialogue) == [.expired(checked: Dialogue.instant(-50))])
        #expect(dialogue.pass(until: 110) == [])
        #expect(dialogue.pass(until: 111).map(\.output) == [.withdraws])
        #expect(dialogue.at(112, .copySettled(.failed)) == [])
        #expect(events(dialogue).count == 1)
        #expect(dialogue.pass(until: 172).map(\.output) == [.withdraws])
        #expect(dialogue.at(173, .copy(gone), .copySettled(.done)) == [])
        #expect(events(dialogue).dropFirst() == [.withdrawn(checked: Dialogue.instant(-50))])
    }

    @Test("A change that was made but has no effect is not requested endlessly")
    func contradicted() {
        let dialogue = dialogue(lastCheck: -200, copy: gone)
        #expect(dialogue.at(1, .reconfigured(settings(1000), sameProduct: true)) == [.putsBack])
        #expect(dialogue.at(2, .copySettled(.done)) == [])
        #expect(dialogue.pass(until: 61) == [])
        #expect(dialogue.pass(until: 62).map(\.output) == [.putsBack])
    }

    @Test("A copy that is gone is neither withdrawn nor published again")
    func lost() {
        let dialogue = dialogue(lastCheck: -200, copy: gone)
        #expect(dialogue.at(1, .copy(nil), .lost) == [.starts(1, ["loss"])])
        #expect(dialogue.at(2, .reconfigured(settings(1000), sameProduct: true)) == [])
        #expect(events(dialogue) == [])
    }

    @Test("While it is withdrawn no signal is skipped because of a fresh copy")
    func fresh() {
        let dialogue = Dialogue(
            RefreshPolicy(quiet: .zero, minInterval: .zero, freshFor: .seconds(1000)), lastCheck: -50, maxAge: 10,
            withdraws: true, copy: gone)
        #expect(dialogue.at(1, .receives("network", at: 1)) == [.starts(1, ["network"])])
    }

    @Test("After a sleep the expiry is noticed immediately")
    func woke() {
        let dialogue = dialogue()
        #expect(dialogue.at(10_000, .woke).contains(.withdraws))
    }

    @Test("A pipeline without withdrawal needs no state of the copy")
    func none() {
        let dialogue = dialogue(withdraws: false)
        #expect(dialogue.pass(until: 1000) == [])
        #expect(dialogue.machine.copy.withdrawal == nil)
        #expect(events(dialogue) == [.expired(checked: Dialogue.instant(-50))])
    }
}

@Suite("A copy that is to be withdrawn, with any order of events")
struct WithdrawalCourseTests {
    /// A store that keeps a copy, and performs the machine's requests, sooner or later.
    private final class Keeper {
        let dialogue: Dialogue
        var dice: Jitter
        var copy = CopyState(number: 1)
        var running: UInt64?
        var requested: Dialogue.Output?
        var now = 0.0
        var settings: (maxAge: Double, withdraws: Bool) = (100, true)

        init(seed: UInt64) {
            dice = Jitter(seed: seed)
            dialogue = Dialogue(
                RefreshPolicy(quiet: .zero, minInterval: .zero, freshFor: .zero), lastCheck: -1, maxAge: 100,
                withdraws: true, copy: copy, seed: seed)
        }

        func roll(_ sides: Int) -> Int {
            min(sides - 1, Int(dice.duration(upTo: .seconds(sides)).components.seconds))
        }

        func notify(_ events: Dialogue.Event...) {
            for event in events { take(dialogue.at(now, event)) }
            take(dialogue.pass(until: now).map(\.output))
        }

        func take(_ outputs: [Dialogue.Output]) {
            for output in outputs {
                switch output {
                case .withdraws, .putsBack:
                    #expect(requested == nil, "one thing at a time")
                    if output == .withdraws { #expect(!copy.isPinned && settings.withdraws) }
                    requested = output
                case .starts(let run, _): running = run
                default: break
                }
            }
        }

        func settle() {
            guard let output = requested else { return }
            requested = nil
            switch roll(5) {
            case 0: notify(.copySettled(.failed))
            case 1: notify(.copySettled(.left))
            default:
                // It was pinned meanwhile, so it is left as it is.
                guard output == .putsBack || !copy.isPinned else { return notify(.copySettled(.left)) }
                copy.isWithdrawn = output == .withdraws
                notify(.copy(copy), .copySettled(.done))
            }
        }

        func step() {
            switch roll(9) {
            case 0, 1, 2:
                now += Double(roll(60)) + 0.5
                take(dialogue.pass(until: now).map(\.output))
            case 3:
                settings = ([50, 100, 400][roll(3)], roll(3) > 0)
                let policy = RefreshPolicy(quiet: .zero, minInterval: .zero, freshFor: .zero)
                notify(
                    .reconfigured(
                        RefreshSettings(
                            policy: policy, needsNetwork: true, maxAge: .seconds(settings.maxAge),
                            withdraws: settings.withdraws), sameProduct: true))
            case 4:
                // A withdrawn copy cannot be pinned.
                guard !copy.isWithdrawn || copy.isPinned else { return }
                copy.isPinned.toggle()
                notify(.copy(copy))
            case 5: notify(.receives("reload", at: now))
            case 6:
                guard let run = running else { return }
                running = nil
                if roll(2) == 0 { return notify(.fails(run, .connection)) }
                copy.isWithdrawn = false
                if roll(2) == 0 { copy.number += 1 }
                notify(.copy(copy), .ended(run: run, .succeeded(changed: false, generation: copy.number)))
            default: settle()
            }
        }

        /// When no more events come, its state is the required one.
        func checkQuiet() {
            for _ in 0..<20 where requested != nil || dialogue.machine.copy.withdrawal?.retry != nil {
                settle()
                now += 61
                take(dialogue.pass(until: now).map(\.output))
            }
            let isDue = dialogue.machine.withdrawsAt.map { Dialogue.instant(now) >= $0 } ?? false
            #expect(copy.isWithdrawn == isDue)
            #expect(!(copy.isWithdrawn && copy.isPinned))
        }
    }

    @Test(
        "gets the state that its age, the configuration and the operator require, one change at a time",
        arguments: 0..<60)
    func anyCourse(seed: UInt64) {
        let bodyStore = Keeper(seed: seed)
        for _ in 0..<200 { bodyStore.step() }
        bodyStore.checkQuiet()
        // The reports match the states, in order.
        var isNotified = false
        for event in bodyStore.dialogue.events {
            switch event {
            case .withdrawn:
                #expect(!isNotified)
                isNotified = true
            case .returned:
                #expect(isNotified)
                isNotified = false
            default: break
            }
        }
        #expect(isNotified == bodyStore.copy.isWithdrawn)
    }
}

@Suite("A pipeline whose copy is withdrawn")
struct WithdrawalRunnerTests {
    private static func definition(maxAge: Duration? = .seconds(100), withdraws: Bool = true) -> PipelineDefinition {
        var definition = Stage.definition(RefreshPolicy(quiet: .zero, freshFor: .zero))
        definition.cache.maxAge = maxAge
        definition.cache.withdraws = withdraws
        return definition
    }

    @Test("publishes nothing, sends conditional requests, and publishes the same generation again after a 304")
    func returns() throws {
        let stage = try Stage(Self.definition())
        stage.origin.answers(.content("data", tag: "\"1\""), .fails(RunFailure(.refused, "gone")), .notModified)
        try stage.start()
        try stage.fire("start")
        #expect(stage.status.generation?.number == 1)
        try stage.advance(100)
        #expect(stage.status.generation == nil)
        #expect(stage.status.withdrawn?.number == 1)
        #expect(stage.status.withdrawn?.withdrawnSince == stage.clock.wallStart + 100_000_000)
        #expect(stage.status.freshness == .expired)
        try stage.fire("reload")
        #expect(stage.status.withdrawn?.number == 1)
        try stage.fire("reload")
        #expect(stage.status.generation?.number == 1)
        #expect(stage.status.withdrawn == nil)
        #expect(stage.store.state.withLock { $0.withdrawals } == [.withdrawn, .putBack])
        #expect(stage.store.state.withLock { $0.unchanged } == 1)
        #expect(
            stage.events.contains {
                if case .returned(isSame: true, let causes) = $0 { causes?.map(\.signal) == ["reload"] } else { false }
            })
    }

    @Test("publishes newly fetched content, whether it is the same or not")
    func fetched() throws {
        let stage = try Stage(Self.definition())
        stage.origin.answers(.content("data"), .content("data"), .content("other"))
        try stage.start()
        try stage.fire("start")
        try stage.advance(100)
        try stage.fire("reload")
        #expect(stage.status.generation?.number == 1)
        try stage.advance(100)
        #expect(stage.status.generation == nil)
        try stage.fire("reload")
        #expect(stage.status.generation?.number == 2)
        #expect(stage.store.state.withLock { $0.withdrawals } == [.withdrawn, .withdrawn])
    }

    @Test("stays withdrawn after a restart, and is published again by another configuration")
    func restarts() throws {
        let stage = try Stage(Self.definition())
        stage.origin.answers(.content("data"))
        try stage.start()
        try stage.fire("start")
        try stage.advance(100)
        try stage.restart()
        #expect(stage.status.generation == nil)
        #expect(stage.status.withdrawn?.number == 1)
        stage.runner.reconfigure(Self.definition(maxAge: .seconds(1000)))
        try stage.executor.runUntilIdle()
        #expect(stage.status.generation?.number == 1)
        stage.runner.reconfigure(Self.definition())
        try stage.executor.runUntilIdle()
        #expect(stage.status.generation == nil)
        stage.runner.reconfigure(Self.definition(withdraws: false))
        try stage.executor.runUntilIdle()
        #expect(stage.status.generation?.number == 1)
    }

    @Test("stays as it was while the change fails")
    func fails() throws {
        let stage = try Stage(Self.definition())
        stage.origin.answers(.content("data", tag: "\"1\""), .notModified, .content("data"))
        try stage.start()
        try stage.fire("start")
        stage.store.state.withLock { $0.isReadOnly = true }
        try stage.advance(100)
        #expect(stage.status.generation?.number == 1)
        stage.store.state.withLock { $0.isReadOnly = false }
        try stage.advance(60)
        #expect(stage.status.generation == nil)
        // A copy that cannot be published again is not fetched for that.
        stage.store.state.withLock { $0.isReadOnly = true }
        try stage.fire("reload")
        #expect(stage.origin.times.count == 2)
        #expect(stage.status.generation == nil)
        stage.store.state.withLock { $0.isReadOnly = false }
        try stage.advance(60)
        #expect(stage.origin.times.count == 2)
        #expect(stage.status.generation?.number == 1)
    }

    @Test("publishes no partial results, and receives pins and rollbacks")
    func operators() throws {
        let stage = try Stage(Self.definition())
        stage.origin.answers(.content("data"))
        try stage.start()
        try stage.fire("start")
        var pinned = try #require(stage.status.generation)
        pinned.pinnedSince = 1
        pinned.revision = 10
        stage.runner.publishes(pinned)
        stage.store.state.withLock { $0.remembered.generation = pinned }
        try stage.advance(150)
        #expect(stage.status.generation?.number == 1)
        #expect(stage.status.freshness == .expired)
        pinned.release()
        pinned.revision = 11
        stage.store.state.withLock { $0.remembered.generation = pinned }
        stage.runner.publishes(pinned)
        try stage.executor.runUntilIdle()
        #expect(stage.status.generation == nil)
        // A rollback.
        var chosen = try #require(stage.status.withdrawn)
        chosen.withdrawnSince = nil
        chosen.writtenAt = stage.clock.wallNow
        chosen.revision += 1
        stage.store.state.withLock { $0.remembered.generation = chosen }
        stage.runner.publishes(chosen)
        try stage.advance(99)
        #expect(stage.status.generation?.number == 1)
        try stage.advance(1)
        #expect(stage.status.generation == nil)
    }
}
