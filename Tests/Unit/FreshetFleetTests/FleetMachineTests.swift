import FreshetModel
import Testing

@testable import FreshetFleet

/// A machine at a time that the test sets.
private struct Bench {
    var machine: FleetMachine
    var now: ContinuousClock.Instant
    let start: ContinuousClock.Instant
    static let wall = WallTime(seconds: 1_795_000_000)

    init(seen: UInt64 = 0, every: Duration? = .seconds(600), fetches: Bool = true) {
        start = .now
        now = start
        machine = FleetMachine(
            FleetSettings(machine: "me", fetches: fetches, checkPeriod: every, spread: .zero), seen: seen, at: start,
            fraction: { 0 })
        _ = handle(.connected(serverTime: Self.wall))
    }

    var time: WallTime { Self.wall.advanced(by: start.duration(to: now)) }

    mutating func handle(_ event: FleetMachine.Event) -> [FleetMachine.Action] { machine.handle(event, at: now) }

    mutating func configure(_ change: (inout FleetSettings) -> Void) {
        var settings = machine.settings
        change(&settings)
        _ = handle(.configured(settings))
    }

    func record(_ number: UInt64, content: UInt8 = 1, by machine: String = "other", age: Duration = .zero)
        -> FleetRecord
    {
        var record = FleetRecord(
            fleet: "f", pipeline: "p", fingerprint: FleetWorld.digest(9), number: number,
            digest: FleetWorld.digest(content), size: 1, checkedAt: time.advanced(by: .zero - age), madeBy: machine)
        record.members = 10
        return record
    }
}

extension [FleetMachine.Action] {
    fileprivate var decision: FleetDecision? {
        for case .decide(let decision) in self { return decision }
        return nil
    }

    fileprivate var isReading: Bool { contains(.read) }
}

@Suite("The machine of a shared pipeline") struct FleetMachineTests {
    @Test("a pause ends by its length, also if its end is never received")
    func pauseEnds() {
        var bench = Bench()
        let pause = FleetPause(duration: .seconds(60), failures: 1, reason: "503")
        let held = FleetClaim(
            sequence: 7, holder: FleetClaim.Holder(machine: "other", nonce: "n", pause: pause), storedAt: bench.time)
        _ = bench.handle(.run(FleetRequest(.environment)))
        #expect(bench.handle(.read(nil, sequence: 0, held)).decision == .wait(.paused(pause, by: "other")))
        bench.now += .seconds(62)
        #expect(bench.handle(.run(FleetRequest(.environment))).isReading)
        // The claim was stored without a lifetime, so it is still there.
        let first = bench.handle(.read(nil, sequence: 0, held))
        #expect(first.contains { if case .claim(expected: 7, _) = $0 { true } else { false } })
        // Or its marker is gone, too.
        _ = bench.handle(.claimed(.conflict))
        let second = bench.handle(.read(nil, sequence: 0, FleetClaim()))
        #expect(second.contains { if case .claim(expected: 0, _) = $0 { true } else { false } })
    }

    @Test("a notice of a pause is read before it counts")
    func forgedPause() {
        var bench = Bench()
        _ = bench.handle(.run(FleetRequest(.environment)))
        bench.configure { $0.machine = "me" }
        _ = bench.handle(.read(bench.record(1, age: .seconds(10_000)), sequence: 1, FleetClaim()))
        let forged = FleetClaim(
            sequence: .max,
            holder: FleetClaim.Holder(
                machine: "x", nonce: "n", pause: FleetPause(duration: .seconds(3_600), failures: 9, reason: "")))
        let actions = bench.handle(.claim(forged))
        #expect(actions.decision == nil)
    }

    @Test("after a restart, a head that was followed before changes nothing, and an older one is rejected")
    func restart() {
        var bench = Bench(seen: 5)
        let actions = bench.handle(.head(bench.record(3)))
        #expect(actions.contains { if case .reject(.older(number: 3, seen: 5)) = $0 { true } else { false } })
        // The copy is what this machine fetched after head 5: it does not go back to it.
        _ = bench.handle(.head(bench.record(5, content: 1)))
        #expect(bench.handle(.run(FleetRequest(.environment, copy: FleetWorld.digest(2)))).isReading)
        var other = Bench(seen: 5)
        _ = other.handle(.head(other.record(5, content: 1)))
        let decision = other.handle(.run(FleetRequest(.environment, copy: FleetWorld.digest(1)))).decision
        guard case .follow(let head)? = decision else {
            Issue.record("\(String(describing: decision))")
            return
        }
        #expect(head.number == 5)
    }

    @Test("a result whose publication gets no answer is published when the engine answers again")
    func lostPublication() {
        var bench = Bench()
        _ = bench.handle(.run(FleetRequest(.operation)))
        _ = bench.handle(.read(nil, sequence: 0, FleetClaim()))
        bench.now += .seconds(5)
        _ = bench.handle(.timer)
        #expect(bench.handle(.claimed(.stored(sequence: 1))).decision == .fetch)
        let end = FleetRunEnd.succeeded(digest: FleetWorld.digest(1), size: 1, Validators())
        #expect(bench.handle(.ended(end)).contains { if case .publish = $0 { true } else { false } })
        #expect(bench.handle(.published(.unknown)).isReading)
        _ = bench.handle(.readFailed)
        _ = bench.handle(.disconnected)
        bench.now += .seconds(20)
        let actions = bench.handle(.connected(serverTime: bench.time))
        #expect(actions.contains { if case .publish = $0 { true } else { false } })
    }

    @Test("a check that seems to be in the future does not count as recent")
    func future() {
        var bench = Bench(seen: 5)
        _ = bench.handle(.head(bench.record(5, age: .seconds(-3_600))))
        #expect(bench.handle(.run(FleetRequest(.environment, copy: FleetWorld.digest(1)))).isReading)
        var other = Bench(seen: 5)
        _ = other.handle(.head(other.record(5, age: .seconds(-5))))
        #expect(other.handle(.run(FleetRequest(.environment, copy: FleetWorld.digest(1)))).decision != nil)
    }

    @Test("a member that follows does not trust a check in the future either")
    func followerFuture() {
        var bench = Bench(seen: 5)
        bench.configure { $0.fetches = false }
        _ = bench.handle(.head(bench.record(5, age: .seconds(-3_600))))
        #expect(bench.handle(.run(FleetRequest(.environment, copy: FleetWorld.digest(1)))).decision == nil)
        bench.now += FleetSettings.patience
        guard case .wait(.noFetcher)? = bench.handle(.timer).decision else {
            Issue.record("it follows")
            return
        }
    }

    @Test("the claim is renewed while the head is being stored")
    func renewal() {
        var bench = Bench()
        _ = bench.handle(.run(FleetRequest(.operation)))
        _ = bench.handle(.read(nil, sequence: 0, FleetClaim()))
        #expect(bench.handle(.claimed(.stored(sequence: 1))).decision == .fetch)
        _ = bench.handle(.ended(.succeeded(digest: FleetWorld.digest(1), size: 1, Validators())))
        bench.now += FleetSettings.renewal
        let actions = bench.handle(.timer)
        #expect(actions.contains { if case .renew(expected: 1, _) = $0 { true } else { false } })
        #expect(!actions.contains { if case .publish = $0 { true } else { false } })
    }

    @Test("content that a member's own checks reject pauses nobody")
    func rejected() {
        var bench = Bench()
        _ = bench.handle(.run(FleetRequest(.operation)))
        _ = bench.handle(.read(nil, sequence: 0, FleetClaim()))
        _ = bench.handle(.claimed(.stored(sequence: 1)))
        #expect(bench.handle(.ended(.rejected)).contains(.release(expected: 1)))
    }

    @Test("a member whose request failed lets the others try first")
    func failedLast() {
        var bench = Bench(every: nil)
        func backoff(_ actions: [FleetMachine.Action]) -> ContinuousClock.Instant? {
            for case .wake(let at?) in actions { return at }
            return nil
        }
        _ = bench.handle(.run(FleetRequest(.operation)))
        _ = bench.handle(.read(nil, sequence: 0, FleetClaim()))
        _ = bench.handle(.timer)
        #expect(bench.handle(.claimed(.stored(sequence: 1))).decision == .fetch)
        _ = bench.handle(.ended(.failed(reason: "503", retryAfter: nil)))
        bench.now += .seconds(100)
        _ = bench.handle(.run(FleetRequest(.operation)))
        let wake = backoff(bench.handle(.read(nil, sequence: 0, FleetClaim(sequence: 2))))
        #expect(wake.map { $0 >= bench.now + FleetSettings.longestClaimBackoff } ?? false)
    }

    @Test("a head that was checked before this member requested its copy alone does not replace it")
    func older() {
        for fetches in [true, false] {
            var bench = Bench(fetches: fetches)
            _ = bench.handle(.head(bench.record(1, content: 1)))
            _ = bench.handle(.followed(1))
            _ = bench.handle(.disconnected)
            bench.now += .seconds(100)
            let old = bench.record(2, content: 2)
            bench.now += .seconds(100)
            _ = bench.handle(.fetchedAlone(FleetWorld.digest(3)))
            bench.now += .seconds(100)
            _ = bench.handle(.connected(serverTime: bench.time))
            _ = bench.handle(.head(old))
            let actions = bench.handle(.run(FleetRequest(.head, copy: FleetWorld.digest(3))))
            // A member that fetches publishes newer content; the others wait for it.
            if fetches { #expect(actions.isReading) } else { #expect(actions.decision == .keep) }
            let new = bench.record(3, content: 3)
            _ = bench.handle(.head(new))
            let next = bench.handle(.run(FleetRequest(.head, copy: FleetWorld.digest(3))))
            #expect(next.decision == .follow(new) || actions.isReading)
        }
    }

    @Test("a head whose content could not be read is taken by the next run, without a request for the origin")
    func interrupted() {
        var bench = Bench()
        _ = bench.handle(.head(bench.record(1, content: 1)))
        _ = bench.handle(.followed(1))
        let head = bench.record(2, content: 2)
        _ = bench.handle(.head(head))
        #expect(bench.handle(.run(FleetRequest(.head, copy: FleetWorld.digest(1)))).decision == .follow(head))
        // The transfer fails. The next run has another cause.
        bench.now += .seconds(1)
        #expect(bench.handle(.run(FleetRequest(.environment, copy: FleetWorld.digest(1)))).decision == .follow(head))
        #expect(bench.machine.settled == 1)
    }

    @Test("a follower whose content is overdue reads the head: notices may have been lost behind a leaf node")
    func overdueFollower() {
        var bench = Bench(fetches: false)
        _ = bench.handle(.head(bench.record(1, content: 1)))
        _ = bench.handle(.followed(1))
        bench.now += .seconds(1_000)
        let actions = bench.handle(.run(FleetRequest(.environment, copy: FleetWorld.digest(1))))
        #expect(actions.isReading && actions.decision == nil)
        let head = bench.record(2, content: 2)
        #expect(bench.handle(.read(head, sequence: 2, FleetClaim())).decision == .follow(head))
    }

    private func rollOut(_ record: FleetRecord, before: UInt8, number: UInt64, share: UInt32 = 0) -> FleetRecord {
        var record = record
        record.rollOut = FleetRecord.RollOut(
            share: share, since: record.checkedAt, before: FleetWorld.digest(before), sizeBefore: 1,
            numberBefore: number)
        return record
    }

    @Test("during a roll-out, a copy that is newer than the content before it stays; an older one is replaced")
    func ahead() {
        for fetches in [true, false] {
            var bench = Bench(fetches: fetches)
            // It got content 2 in the first step of an earlier roll-out.
            _ = bench.handle(.head(rollOut(bench.record(2, content: 2), before: 1, number: 1, share: 1_000_000)))
            _ = bench.handle(.followed(2))
            let head = rollOut(bench.record(3, content: 3), before: 1, number: 1)
            _ = bench.handle(.head(head))
            #expect(bench.handle(.run(FleetRequest(.head, copy: FleetWorld.digest(2)))).decision == .keep)
            // Without a copy, it takes the content that the others have.
            let actions = bench.handle(.run(FleetRequest(.head)))
            guard case .follow(let available)? = actions.decision else {
                Issue.record("\(actions)")
                continue
            }
            #expect(available.digest == FleetWorld.digest(1))
            var other = Bench(fetches: fetches)
            _ = other.handle(.head(head))
            let old = other.handle(.run(FleetRequest(.head, copy: FleetWorld.digest(9))))
            guard case .follow(let record)? = old.decision else {
                Issue.record("\(old)")
                continue
            }
            #expect(record.digest == FleetWorld.digest(1))
        }
    }

    @Test("a member that follows keeps content that it got after the head that it has published, also after a restart")
    func restarted() {
        var bench = Bench(seen: 1, fetches: false)
        _ = bench.handle(.head(bench.record(1, content: 1)))
        #expect(bench.handle(.run(FleetRequest(.environment, copy: FleetWorld.digest(2)))).decision == .keep)
        #expect(bench.handle(.run(FleetRequest(.environment))).decision == .follow(bench.record(1, content: 1)))
    }

    @Test("a check of the same content keeps its roll-out, also by a machine without steps")
    func confirmation() {
        var bench = Bench()
        let head = rollOut(bench.record(5, content: 5), before: 1, number: 1)
        _ = bench.handle(.run(FleetRequest(.operation)))
        _ = bench.handle(.read(head, sequence: 7, FleetClaim()))
        _ = bench.handle(.claimed(.stored(sequence: 8)))
        let actions = bench.handle(.ended(.succeeded(digest: FleetWorld.digest(5), size: 1, Validators())))
        let draft = actions.compactMap { if case .publish(let draft, _) = $0 { draft } else { nil } }.first
        #expect(draft?.rollOut == head.rollOut)
    }

    @Test("a demand that this member has answered does not make it request again, also if its record does not count")
    func answered() {
        var bench = Bench()
        _ = bench.handle(.head(bench.record(1)))
        #expect(bench.handle(.demanded(9)).contains { if case .fire = $0 { true } else { false } })
        _ = bench.handle(.run(FleetRequest(.head, copy: FleetWorld.digest(1))))
        _ = bench.handle(.read(bench.record(1), sequence: 7, FleetClaim()))
        _ = bench.handle(.claimed(.stored(sequence: 8)))
        _ = bench.handle(.ended(.succeeded(digest: FleetWorld.digest(1), size: 1, Validators())))
        let actions = bench.handle(.published(.stored(sequence: 9)))
        #expect(!actions.contains { if case .fire = $0 { true } else { false } })
        #expect(!bench.machine.isDemandOpen)
    }

    @Test("changed steps count from now on, and a step that begins in the future does not last for ever")
    func changedSteps() {
        var bench = Bench()
        _ = bench.handle(.head(rollOut(bench.record(5, content: 5), before: 1, number: 1)))
        var settings = bench.machine.settings
        settings.rollOut = RollOutPlan(steps: [10, 1_000_000], length: .seconds(2), mostFailures: 3)
        let actions = bench.handle(.configured(settings))
        #expect(actions.contains { if case .wake(let at?) = $0 { at <= bench.now + .seconds(10) } else { false } })

        let plan = RollOutReview(plan: settings.rollOut)
        var record = rollOut(bench.record(6, content: 5), before: 1, number: 1)
        record.rollOut?.since = bench.time.advanced(by: .seconds(86_400 * 365))
        #expect(plan.successor(of: record, failures: 0, at: bench.time)?.number == 7)
        #expect(plan.successor(of: record, failures: nil, at: bench.time) == nil)
    }

    @Test("without a connection, a head of the mirror is followed, and a demand waits for the engine")
    func mirror() {
        for hasMirror in [true, false] {
            var bench = Bench(fetches: false)
            bench.configure { $0.hasMirror = hasMirror }
            _ = bench.handle(.disconnected)
            #expect(bench.handle(.run(FleetRequest(.environment))).decision == nil)
            let decision = bench.handle(.head(bench.record(3))).decision
            #expect(decision == (hasMirror ? .follow(bench.record(3)) : nil))
            guard hasMirror else { continue }
            _ = bench.handle(.followed(3))
            _ = bench.handle(.head(bench.record(4, content: 2)))
            #expect(bench.handle(.run(FleetRequest(.demand, copy: FleetWorld.digest(1)))).decision == nil)
        }
    }
}
