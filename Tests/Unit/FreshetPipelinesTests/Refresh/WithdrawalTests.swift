import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("What the refresh machine says of a copy that is to be withdrawn")
struct WithdrawalDialogueTests {
    private func talk(
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

    /// What was told of the copy.
    private func news(_ talk: Dialogue) -> [EngineEvent] {
        talk.events.filter {
            switch $0 {
            case .expired, .expiredNoMore, .withdrawn, .returned: true
            default: false
            }
        }
    }

    private let gone = CopyState(number: 1, isWithdrawn: true)

    @Test("It is, once, at the instant at which it has expired; and that alone is told")
    func expires() {
        let talk = talk()
        #expect(talk.pass(until: 49.9) == [])
        #expect(talk.pass(until: 60).map(\.deed) == [.withdraws])
        #expect(news(talk) == [])
        #expect(talk.at(61, .copy(gone), .copySettled(.done)) == [])
        #expect(news(talk) == [.withdrawn(checked: Dialogue.instant(-50))])
        #expect(talk.freshness == .expired)
        #expect(talk.pass(until: 3000) == [])
        #expect(news(talk).count == 1)
    }

    @Test("Of one that was not whole there is nothing to put back, and the next copy is told as its return")
    func damaged() {
        let talk = talk()
        #expect(talk.pass(until: 60).map(\.deed) == [.withdraws])
        #expect(talk.at(61, .copyLost, .copySettled(.left)) == [])
        #expect(talk.pass(until: 3000) == [])
        // Whoever keeps it tells that.
        #expect(news(talk) == [])
        #expect(talk.at(3001, .hears("reload", at: 3001)) == [.starts(1, ["reload"])])
        #expect(
            talk.at(3002, .copy(CopyState(number: 1)), .ended(run: 1, .succeeded(changed: false, generation: 1))) == [])
        #expect(news(talk) == [.returned(isSame: true, causes: talk.orders.first?.causes)])
        #expect(talk.pass(until: 3110).map(\.deed) == [.withdraws])
    }

    @Test("After one that was lost, a copy that the operator rolls back to stays for max-age from then, and no longer")
    func rolledBackAfterLoss() {
        let talk = talk()
        #expect(talk.pass(until: 60).map(\.deed) == [.withdraws])
        #expect(talk.at(61, .copyLost, .copySettled(.left)) == [])
        #expect(talk.at(70, .copy(CopyState(number: 0, written: Dialogue.instant(70)))) == [])
        #expect(talk.pass(until: 169.9) == [])
        #expect(talk.pass(until: 180).map(\.deed) == [.withdraws])
    }

    @Test("One that is lost is not said to be no longer past its max-age, after an attempt that failed said that it is")
    func lostAfterFailure() {
        let talk = talk()
        #expect(talk.pass(until: 60).map(\.deed) == [.withdraws])
        _ = talk.at(61, .copySettled(.failed))
        #expect(news(talk) == [.expired(checked: Dialogue.instant(-50))])
        #expect(talk.pass(until: 130).map(\.deed) == [.withdraws])
        #expect(talk.at(131, .copyLost, .copySettled(.left)) == [])
        #expect(talk.pass(until: 3000) == [])
        #expect(news(talk).count == 1)
    }

    @Test("A check that succeeds has put it back already: its causes are told with it")
    func returns() {
        let talk = talk(lastCheck: -200, copy: gone)
        #expect(talk.at(1, .hears("reload", at: 1)) == [.starts(1, ["reload"])])
        #expect(
            talk.at(2, .copy(CopyState(number: 1)), .ended(run: 1, .succeeded(changed: false, generation: 1))) == [])
        let causes = talk.orders.first?.causes
        #expect(causes?.map(\.signal) == ["reload"])
        #expect(news(talk) == [.returned(isSame: true, causes: causes)])
        #expect(talk.freshness == .fresh)
        #expect(talk.pass(until: 103).map(\.deed) == [.withdraws])
    }

    @Test("A check that brought something new makes it another one, of which that is told")
    func replaced() {
        let talk = talk(lastCheck: -200, copy: gone)
        _ = talk.at(1, .hears("reload", at: 1))
        #expect(talk.at(2, .copy(CopyState(number: 2)), .succeeds(1)) == [])
        #expect(news(talk) == [.returned(isSame: false, causes: talk.orders.first?.causes)])
    }

    @Test("What a run has put there is left until it is known how the run ended")
    func concluding() {
        let talk = talk(lastCheck: -200, copy: gone)
        _ = talk.at(1, .hears("reload", at: 1))
        // It has been put back, and something else happens before that run is known to have ended.
        #expect(talk.at(2, .copy(CopyState(number: 1))) == [.withdraws])
        #expect(talk.at(2.1, .copySettled(.left)) == [])
        #expect(talk.at(3, .ended(run: 1, .succeeded(changed: false, generation: 1))) == [])
        #expect(talk.pass(until: 100) == [])
        #expect(!news(talk).contains { if case .expired = $0 { true } else { false } })
    }

    @Test("At the start it is known what is withdrawn: nothing is told of that, and nothing done")
    func start() {
        let talk = talk(lastCheck: -200, copy: gone)
        #expect(talk.pass(until: 1000) == [])
        #expect(news(talk) == [])
        #expect(talk.freshness == .expired)
        let away = self.talk(lastCheck: -200)
        #expect(away.at(1) == [])
        #expect(away.machine.withdrawal?.asked == true)
    }

    @Test("A pinned copy is not, and is when it is unpinned")
    func pinned() {
        let talk = talk(copy: CopyState(number: 1, isPinned: true))
        #expect(talk.pass(until: 1000) == [])
        #expect(news(talk) == [.expired(checked: Dialogue.instant(-50))])
        #expect(talk.at(1001, .copy(CopyState(number: 1))) == [.withdraws])
        #expect(talk.at(1002, .copy(gone), .copySettled(.done)) == [])
        #expect(news(talk).dropFirst() == [.withdrawn(checked: Dialogue.instant(-50))])
    }

    @Test("What the operator has put there stays for max-age from then, and is told to have expired")
    func chosen() {
        let talk = talk(lastCheck: -200, copy: gone)
        #expect(talk.at(10, .copy(CopyState(number: 1, written: Dialogue.instant(10)))) == [])
        #expect(
            news(talk) == [.returned(isSame: true, causes: nil), .expired(checked: Dialogue.instant(-200))])
        #expect(talk.pass(until: 109.9) == [])
        #expect(talk.pass(until: 111).map(\.deed) == [.withdraws])
    }

    @Test("What a run has found again of which a part failed stays for max-age from then")
    func partial() {
        let talk = talk()
        _ = talk.at(40, .hears("reload", at: 40))
        let flaw = RunFailure(.connection, "a branch")
        _ = talk.at(41, .ended(run: 1, .succeeded(changed: false, generation: 1, flaw: flaw)))
        #expect(!talk.pass(until: 140.9).map(\.deed).contains(.withdraws))
        #expect(talk.pass(until: 141).map(\.deed).contains(.withdraws))
    }

    @Test("A clock that was wrong when its file was looked at keeps it for no longer")
    func clock() {
        let talk = talk(lastCheck: 0, copy: CopyState(number: 1, written: Dialogue.instant(0)))
        let right = Dialogue.instant(-1000)
        let memory = StoredRefreshState(
            lastCheck: right, confirmed: right, hasGeneration: true, copy: CopyState(number: 1, written: right))
        #expect(talk.at(1, .clockStepped(memory)).contains(.withdraws))
    }

    @Test("What a check refused is not asked for by each signal for that")
    func refused() {
        let talk = Dialogue(
            RefreshPolicy(every: .seconds(3600), quiet: .zero, freshFor: .seconds(600)), lastCheck: -200, maxAge: 100,
            withdraws: true, copy: gone)
        #expect(talk.at(1, .hears("resume", at: 1)) == [.starts(1, ["resume"])])
        var failure = RunFailure(.content, "a portal")
        failure.refusal = .lasting
        _ = talk.at(2, .ended(run: 1, .failed(failure)))
        #expect(talk.at(10, .hears("resume", at: 10)) == [])
        #expect(talk.at(11, .hears("reload", at: 11)) == [.starts(2, ["reload"])])
    }

    @Test("A reload that wants it no more, or makes max-age longer, puts it back; one that wants it takes it away")
    func reconfigured() {
        let talk = talk(lastCheck: -200, copy: gone)
        #expect(talk.at(1, .reconfigured(settings(100, withdraws: false), sameProduct: true)) == [.putsBack])
        #expect(talk.at(2, .copy(CopyState(number: 1)), .copySettled(.done)) == [])
        #expect(
            news(talk) == [.returned(isSame: true, causes: nil), .expired(checked: Dialogue.instant(-200))])
        #expect(talk.at(3, .reconfigured(settings(100), sameProduct: true)) == [.withdraws])
        #expect(talk.at(4, .copy(gone), .copySettled(.done)) == [])
        #expect(talk.at(5, .reconfigured(settings(1000), sameProduct: true)) == [.putsBack])
        #expect(talk.at(6, .copy(CopyState(number: 1)), .copySettled(.done)) == [])
        #expect(talk.pass(until: 799) == [])
        #expect(talk.pass(until: 801).map(\.deed) == [.withdraws])
    }

    @Test("One that cannot be taken away is told to be offered still, and tried again a minute later")
    func fails() {
        let talk = talk()
        #expect(talk.pass(until: 50).map(\.deed) == [.withdraws])
        #expect(talk.at(51, .copySettled(.failed)) == [])
        #expect(news(talk) == [.expired(checked: Dialogue.instant(-50))])
        #expect(talk.pass(until: 110) == [])
        #expect(talk.pass(until: 111).map(\.deed) == [.withdraws])
        #expect(talk.at(112, .copySettled(.failed)) == [])
        #expect(news(talk).count == 1)
        #expect(talk.pass(until: 172).map(\.deed) == [.withdraws])
        #expect(talk.at(173, .copy(gone), .copySettled(.done)) == [])
        #expect(news(talk).dropFirst() == [.withdrawn(checked: Dialogue.instant(-50))])
    }

    @Test("What is done and is not so all the same is not asked for over and over")
    func contradicted() {
        let talk = talk(lastCheck: -200, copy: gone)
        #expect(talk.at(1, .reconfigured(settings(1000), sameProduct: true)) == [.putsBack])
        #expect(talk.at(2, .copySettled(.done)) == [])
        #expect(talk.pass(until: 61) == [])
        #expect(talk.pass(until: 62).map(\.deed) == [.putsBack])
    }

    @Test("One that is gone is neither withdrawn nor put back")
    func lost() {
        let talk = talk(lastCheck: -200, copy: gone)
        #expect(talk.at(1, .copy(nil), .lost) == [])
        #expect(talk.at(2, .reconfigured(settings(1000), sameProduct: true)) == [])
        #expect(news(talk) == [])
    }

    @Test("While it is withdrawn no signal is left out since the copy is fresh")
    func fresh() {
        let talk = Dialogue(
            RefreshPolicy(quiet: .zero, minInterval: .zero, freshFor: .seconds(1000)), lastCheck: -50, maxAge: 10,
            withdraws: true, copy: gone)
        #expect(talk.at(1, .hears("network", at: 1)) == [.starts(1, ["network"])])
    }

    @Test("After sleep it is noticed at once")
    func woke() {
        let talk = talk()
        #expect(talk.at(10_000, .woke).contains(.withdraws))
    }

    @Test("Nothing of it is asked of a pipeline that withdraws nothing")
    func none() {
        let talk = talk(withdraws: false)
        #expect(talk.pass(until: 1000) == [])
        #expect(talk.machine.withdrawal == nil)
        #expect(news(talk) == [.expired(checked: Dialogue.instant(-50))])
    }
}

@Suite("A copy that is to be withdrawn, whatever comes in whatever order")
struct WithdrawalCourseTests {
    /// Somebody who keeps a copy, and does what the machine asks for, sooner or later.
    private final class Keeper {
        let talk: Dialogue
        var dice: Jitter
        var copy = CopyState(number: 1)
        var running: UInt64?
        var asked: Dialogue.Permission?
        var now = 0.0
        var settings: (maxAge: Double, withdraws: Bool) = (100, true)

        init(seed: UInt64) {
            dice = Jitter(seed: seed)
            talk = Dialogue(
                RefreshPolicy(quiet: .zero, minInterval: .zero, freshFor: .zero), lastCheck: -1, maxAge: 100,
                withdraws: true, copy: copy, seed: seed)
        }

        func roll(_ sides: Int) -> Int {
            min(sides - 1, Int(dice.duration(upTo: .seconds(sides)).components.seconds))
        }

        func tell(_ events: Dialogue.Event...) {
            for event in events { take(talk.at(now, event)) }
            take(talk.pass(until: now).map(\.deed))
        }

        func take(_ deeds: [Dialogue.Permission]) {
            for deed in deeds {
                switch deed {
                case .withdraws, .putsBack:
                    #expect(asked == nil, "one thing at a time")
                    if deed == .withdraws { #expect(!copy.isPinned && settings.withdraws) }
                    asked = deed
                case .starts(let run, _): running = run
                default: break
                }
            }
        }

        func settle() {
            guard let deed = asked else { return }
            asked = nil
            switch roll(5) {
            case 0: tell(.copySettled(.failed))
            case 1: tell(.copySettled(.left))
            default:
                // Pinned meanwhile, it is left.
                guard deed == .putsBack || !copy.isPinned else { return tell(.copySettled(.left)) }
                copy.isWithdrawn = deed == .withdraws
                tell(.copy(copy), .copySettled(.done))
            }
        }

        func step() {
            switch roll(9) {
            case 0, 1, 2:
                now += Double(roll(60)) + 0.5
                take(talk.pass(until: now).map(\.deed))
            case 3:
                settings = ([50, 100, 400][roll(3)], roll(3) > 0)
                let policy = RefreshPolicy(quiet: .zero, minInterval: .zero, freshFor: .zero)
                tell(
                    .reconfigured(
                        RefreshSettings(
                            policy: policy, needsNetwork: true, maxAge: .seconds(settings.maxAge),
                            withdraws: settings.withdraws), sameProduct: true))
            case 4:
                // What is withdrawn cannot be pinned.
                guard !copy.isWithdrawn || copy.isPinned else { return }
                copy.isPinned.toggle()
                tell(.copy(copy))
            case 5: tell(.hears("reload", at: now))
            case 6:
                guard let run = running else { return }
                running = nil
                if roll(2) == 0 { return tell(.fails(run, .connection)) }
                copy.isWithdrawn = false
                if roll(2) == 0 { copy.number += 1 }
                tell(.copy(copy), .ended(run: run, .succeeded(changed: false, generation: copy.number)))
            default: settle()
            }
        }

        /// When nothing happens any more, it is as it is to be.
        func checkCalm() {
            for _ in 0..<20 where asked != nil || talk.machine.withdrawal?.retry != nil {
                settle()
                now += 61
                take(talk.pass(until: now).map(\.deed))
            }
            let isDue = talk.machine.withdrawsAt.map { Dialogue.instant(now) >= $0 } ?? false
            #expect(copy.isWithdrawn == isDue)
            #expect(!(copy.isWithdrawn && copy.isPinned))
        }
    }

    @Test("becomes what its age, the configuration and the operator want, one thing at a time", arguments: 0..<60)
    func anyCourse(seed: UInt64) {
        let keeper = Keeper(seed: seed)
        for _ in 0..<200 { keeper.step() }
        keeper.checkCalm()
        // What was told is what was so, in turn.
        var isTold = false
        for event in keeper.talk.events {
            switch event {
            case .withdrawn:
                #expect(!isTold)
                isTold = true
            case .returned:
                #expect(isTold)
                isTold = false
            default: break
            }
        }
        #expect(isTold == keeper.copy.isWithdrawn)
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

    @Test("offers nothing, asks conditionally, and offers the same generation again after a 304")
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

    @Test("offers what was fetched anew, whether it is the same or not")
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

    @Test("goes on after a restart as it was, and back by another configuration")
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

    @Test("is what it was while that cannot be done")
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
        // What cannot be put back is not fetched for that.
        stage.store.state.withLock { $0.isReadOnly = true }
        try stage.fire("reload")
        #expect(stage.origin.times.count == 2)
        #expect(stage.status.generation == nil)
        stage.store.state.withLock { $0.isReadOnly = false }
        try stage.advance(60)
        #expect(stage.origin.times.count == 2)
        #expect(stage.status.generation?.number == 1)
    }

    @Test("shows readers nothing that is not whole yet, and hears when it is pinned or chosen")
    func operators() throws {
        let stage = try Stage(Self.definition())
        stage.origin.answers(.content("data"))
        try stage.start()
        try stage.fire("start")
        var pinned = try #require(stage.status.generation)
        pinned.pinnedSince = 1
        pinned.turn = 10
        stage.runner.offers(pinned)
        stage.store.state.withLock { $0.remembered.generation = pinned }
        try stage.advance(150)
        #expect(stage.status.generation?.number == 1)
        #expect(stage.status.freshness == .expired)
        pinned.release()
        pinned.turn = 11
        stage.store.state.withLock { $0.remembered.generation = pinned }
        stage.runner.offers(pinned)
        try stage.executor.runUntilIdle()
        #expect(stage.status.generation == nil)
        // A rollback.
        var chosen = try #require(stage.status.withdrawn)
        chosen.withdrawnSince = nil
        chosen.writtenAt = stage.clock.wallNow
        chosen.turn += 1
        stage.store.state.withLock { $0.remembered.generation = chosen }
        stage.runner.offers(chosen)
        try stage.advance(99)
        #expect(stage.status.generation?.number == 1)
        try stage.advance(1)
        #expect(stage.status.generation == nil)
    }
}
