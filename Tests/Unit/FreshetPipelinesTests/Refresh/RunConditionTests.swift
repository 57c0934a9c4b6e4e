import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("The values of which the refresh machine consists")
struct RunConditionTests {
    private let now = Dialogue.instant(0)

    private func after(_ seconds: Double) -> BootInstant { Dialogue.instant(seconds) }

    // MARK: Withdrawal

    @Test("a copy is due for withdrawal after its age, its writing and a partly failed run; a pinned one never")
    func due() {
        var withdrawal = Withdrawal(copy: CopyState(number: 1, written: after(5)))
        #expect(withdrawal.due(expires: after(10), maxAge: .seconds(10)) == after(15))
        withdrawal.copyMade(at: after(20))
        #expect(withdrawal.due(expires: after(10), maxAge: .seconds(10)) == after(30))
        _ = withdrawal.copyChanged(CopyState(number: 1, isPinned: true))
        #expect(withdrawal.due(expires: after(10), maxAge: .seconds(10)) == nil)
        #expect(Withdrawal().due(expires: after(10), maxAge: .seconds(10)) == nil)
    }

    @Test("one change at a time is requested; a failed one is retried after a pause, or when a run ends")
    func oneChange() {
        var withdrawal = Withdrawal(copy: CopyState(number: 1))
        #expect(withdrawal.request(isDue: false, now) == nil)
        #expect(withdrawal.request(isDue: true, now) == true)
        #expect(withdrawal.request(isDue: true, now) == nil, "its result is not known yet")
        withdrawal.settled(.failed, now)
        #expect(!withdrawal.takesAway(isDue: true, isRunning: true), "readers still find it")
        #expect(withdrawal.request(isDue: true, after(59)) == nil)
        #expect(withdrawal.request(isDue: true, after(60)) == true)
        withdrawal.settled(.left, after(60))
        withdrawal.runEnded()
        #expect(withdrawal.request(isDue: true, after(61)) == true)
        #expect(withdrawal.copyChanged(CopyState(number: 1, isWithdrawn: true)) == .withdrawn)
        withdrawal.settled(.done, after(61))
        #expect(withdrawal.isWithdrawn && withdrawal.request(isDue: true, after(62)) == nil)
        #expect(withdrawal.request(isDue: false, after(63)) == false)
        #expect(withdrawal.copyChanged(CopyState(number: 2)) == .returned(isSame: false))
    }

    // MARK: Proof

    private let probe = NetworkProbe(url: "http://probe.example/", host: "probe.example")

    @Test("a proof holds for its epoch until it ends, and until a permit that was requested meanwhile is granted")
    func proof() {
        var proof = NetworkProof()
        #expect(proof.seek(ProofRequest(probe, epoch: 2)) && !proof.seek(ProofRequest(probe, epoch: 2)))
        #expect(proof.isAwaited)
        #expect(proof.received(.proven(epoch: 1, until: after(30)), current: 2) == false)
        #expect(proof.request != nil && !proof.holds(in: 2, isStarting: false, at: now), "of an earlier epoch")
        #expect(proof.received(.proven(epoch: 2, until: after(30)), current: 2) == false)
        #expect(proof.request == nil && proof.holds(in: 2, isStarting: false, at: after(29)))
        #expect(!proof.holds(in: 2, isStarting: false, at: after(30)))
        #expect(proof.holds(in: 2, isStarting: true, at: after(30)))
        #expect(!proof.holds(in: 3, isStarting: true, at: after(1)))
        proof.expire()
        #expect(!proof.holds(in: 2, isStarting: true, at: after(1)))
    }

    @Test("a refusal is of the pending request; a result that comes after its withdrawal is ignored")
    func refusal() {
        var proof = NetworkProof()
        #expect(!proof.received(.refused("portal"), current: 1) && proof.refusal == nil)
        #expect(proof.seek(ProofRequest(probe, epoch: 1)) == true)
        #expect(proof.received(.refused("portal"), current: 1) && proof.refusal == "portal" && !proof.isAwaited)
        #expect(proof.seek(ProofRequest(probe, epoch: 2)) && proof.refusal == nil)
        #expect(proof.seek(nil) && !proof.received(.proven(epoch: 2, until: after(9)), current: 2))
        #expect(!proof.holds(in: 2, isStarting: false, at: now))
        proof.mayHaveChanged(at: after(5))
        proof.mayHaveChanged(at: after(4))
        #expect(proof.mayHaveChanged == after(5))
    }

    // MARK: Budget

    @Test("a run may make at least one request; one that could not connect is not counted")
    func budget() {
        let budget = RequestBudget(3, per: .hour)
        var spent = SpentBudget([])
        #expect(spent.spend(1, of: nil, at: now) == nil && spent.allowance(of: nil, at: now) == nil)
        #expect(spent.allowance(of: budget, at: now) == 3)
        #expect(spent.spend(1, of: budget, at: now)?.map(\.count) == [1])
        #expect(spent.settle(1, .cancelled, of: budget, at: now) == nil, "it made the counted request")
        #expect(spent.settle(3, .cancelled, of: budget, at: after(1))?.map(\.count) == [3])
        #expect(spent.allowance(of: budget, at: after(1)) == 1)
        #expect(spent.availability(in: budget, at: after(1)) == after(3601))
        let failure = RunResult.failed(RunFailure(.connection, "no"))
        #expect(spent.settle(1, failure, of: budget, at: after(2))?.map(\.count) == [2])
        #expect(spent.availability(in: budget, at: after(2)) == nil)
        spent.forget()
        #expect(spent.use(of: budget, at: after(2))?.used == 0)
    }

    // MARK: Phase

    @Test("a stop keeps the run until its end, and nothing starts afterwards")
    func phase() {
        let order = RunOrder(run: 4, reason: .signals, causes: [], started: now, epoch: 1)
        let run = RunInProgress(order, requests: [], permit: 1, startBefore: nil, path: "a", limit: .seconds(9))
        var phase = RunPhase.running(run)
        #expect(phase.update { $0.interrupt(.restart, mayFinish: true) } == false, "it may finish")
        #expect(phase.update { $0.interrupt(.networkLost, mayFinish: true) } == true)
        phase = .stopped(phase.run)
        #expect(phase.update { $0.interrupt(.stopped, mayFinish: true) } == false, "it is cancelled already")
        #expect(phase.run?.interruption == .stopped && !phase.isBetweenChecks)
        #expect(phase.end(3) == nil && phase.end(4) != nil)
        #expect(phase == .stopped(nil) && phase.isStopped && phase.run == nil)
    }
}
