import Testing

@testable import FreshetPipelines

@Suite("A run without conditions")
struct UnconditionalTests {
    private let policy = RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .seconds(1), to: .seconds(1)))

    private func refresh(_ request: UInt64? = nil) -> Dialogue.Event {
        .refresh(request: request, force: false, unconditional: true)
    }

    @Test("is the next one, whose cause shows it; the one after it is conditional again")
    func next() {
        let talk = Dialogue(policy)
        #expect(talk.at(0, refresh(7)) == [.starts(1, ["operator"])])
        #expect(talk.orders[0].isUnconditional && talk.orders[0].causes[0].detail == "unconditional")
        #expect(talk.at(1, .succeeds(1)) == [.answers(7, .changed)])
        _ = talk.at(2, .refresh(request: nil, force: false))
        #expect(talk.orders.map(\.isUnconditional) == [true, false])
    }

    @Test("is what signals that wait with it become, whichever came first")
    func merged() {
        let talk = Dialogue(policy, network: Dialogue.offline())
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(1, refresh())
        _ = talk.at(2, .refresh(request: nil, force: true))
        #expect(talk.orders.map(\.isUnconditional) == [true])
        #expect(talk.orders[0].causes.map(\.signal) == ["start", "operator"])
    }

    @Test("waits for the network as such")
    func network() {
        let talk = Dialogue(policy, network: Dialogue.offline())
        #expect(talk.at(0, refresh()).isEmpty)
        _ = talk.at(60, .network(Dialogue.online(epoch: 2, since: 60)), .hears("network", at: 60))
        _ = talk.pass(until: 90)
        #expect(talk.orders.map(\.isUnconditional) == [true])
    }

    @Test(
        "is tried again as such after a failure, until there is an answer",
        arguments: [RunFailure.Kind.transient, .connection, .refused])
    func retried(_ kind: RunFailure.Kind) {
        let talk = Dialogue(policy)
        _ = talk.at(0, refresh())
        for run: UInt64 in 1...3 {
            _ = talk.at(talk.now + 1, .fails(run, kind))
            _ = talk.pass(until: talk.now + 600)
        }
        _ = talk.at(talk.now, .succeeds(4))
        _ = talk.at(talk.now + 1, .refresh(request: nil, force: false))
        #expect(talk.orders.map(\.isUnconditional) == [true, true, true, true, false])
    }

    @Test("is begun anew as such when another run takes its place")
    func superseded() {
        let talk = Dialogue(policy)
        _ = talk.at(0, refresh())
        _ = talk.at(1, .network(Dialogue.online("b", epoch: 2, since: 1)), .hears("network", at: 1))
        _ = talk.at(2, .ended(run: 1, .cancelled))
        _ = talk.pass(until: 60)
        #expect(talk.orders.map(\.isUnconditional) == [true, true])
    }

    @Test("leaves the next attempt at branches that failed conditional for all others")
    func partial() {
        let talk = Dialogue(policy)
        _ = talk.at(0, refresh())
        let flaw = RunFailure(.transient, "a branch")
        _ = talk.at(1, .ended(run: 1, .succeeded(changed: true, generation: 1, flaw: flaw)))
        _ = talk.pass(until: 60)
        #expect(talk.orders.map(\.isUnconditional) == [true, false])
    }
}
