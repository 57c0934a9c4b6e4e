import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("An unconditional run")
struct UnconditionalTests {
    private let policy = RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .seconds(1), to: .seconds(1)))

    private func refresh(_ request: UInt64? = nil) -> Dialogue.Event {
        .refresh(request: request, force: false, unconditional: true)
    }

    @Test("is the next one, whose cause shows it; the one after it is conditional again")
    func next() {
        let dialogue = Dialogue(policy)
        #expect(dialogue.at(0, refresh(7)) == [.starts(1, ["operator"])])
        #expect(dialogue.orders[0].isUnconditional && dialogue.orders[0].causes[0].detail == "unconditional")
        #expect(dialogue.at(1, .succeeds(1)) == [.answers(7, .changed)])
        _ = dialogue.at(2, .refresh(request: nil, force: false))
        #expect(dialogue.orders.map(\.isUnconditional) == [true, false])
    }

    @Test("includes the signals that wait with it, in any order")
    func merged() {
        let dialogue = Dialogue(policy, network: Dialogue.offline())
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, refresh())
        _ = dialogue.at(2, .refresh(request: nil, force: true))
        #expect(dialogue.orders.map(\.isUnconditional) == [true])
        #expect(dialogue.orders[0].causes.map(\.signal) == ["start", "operator"])
    }

    @Test("waits for the network and stays unconditional")
    func network() {
        let dialogue = Dialogue(policy, network: Dialogue.offline())
        #expect(dialogue.at(0, refresh()).isEmpty)
        _ = dialogue.at(60, .network(Dialogue.online(epoch: 2, since: 60)), .receives("network", at: 60))
        _ = dialogue.pass(until: 90)
        #expect(dialogue.orders.map(\.isUnconditional) == [true])
    }

    @Test(
        "is retried unconditionally after a failure, until there is an answer",
        arguments: [RunFailure.Kind.transient, .connection, .refused])
    func retried(_ kind: RunFailure.Kind) {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, refresh())
        for run: UInt64 in 1...3 {
            _ = dialogue.at(dialogue.now + 1, .fails(run, kind))
            _ = dialogue.pass(until: dialogue.now + 600)
        }
        _ = dialogue.at(dialogue.now, .succeeds(4))
        _ = dialogue.at(dialogue.now + 1, .refresh(request: nil, force: false))
        #expect(dialogue.orders.map(\.isUnconditional) == [true, true, true, true, false])
    }

    @Test("stays unconditional when another run replaces it")
    func superseded() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, refresh())
        _ = dialogue.at(1, .network(Dialogue.online("b", epoch: 2, since: 1)), .receives("network", at: 1))
        _ = dialogue.at(2, .ended(run: 1, .cancelled))
        _ = dialogue.pass(until: 60)
        #expect(dialogue.orders.map(\.isUnconditional) == [true, true])
    }

    @Test("with failed branches makes the next attempt unconditional only for them")
    func partial() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, refresh())
        let flaw = RunFailure(.transient, "a branch")
        _ = dialogue.at(1, .ended(run: 1, .succeeded(changed: true, generation: 1, flaw: flaw)))
        _ = dialogue.pass(until: 60)
        #expect(dialogue.orders.map(\.isUnconditional) == [true, false])
    }
}
