import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("A run that may finish, since two runs before it were superseded")
struct SparedTests {
    /// The third run, started on the path `c` at 2 s.
    private func third() -> Dialogue {
        let dialogue = Dialogue()
        _ = dialogue.at(0, .refresh(request: nil, force: false))
        _ = dialogue.at(1, .network(Dialogue.online("b", epoch: 2, since: 1)))
        #expect(dialogue.at(1, .ended(run: 1, .cancelled)) == [.starts(2, ["operator"])])
        _ = dialogue.at(2, .network(Dialogue.online("c", epoch: 3, since: 2)))
        #expect(dialogue.at(2, .ended(run: 2, .cancelled)) == [.starts(3, ["operator"])])
        return dialogue
    }

    @Test("continues when the path changes, and when it comes back")
    func path() {
        let dialogue = third()
        #expect(dialogue.at(3, .network(Dialogue.online("d", epoch: 4, since: 3))) == [])
        #expect(dialogue.at(4, .network(Dialogue.online("c", epoch: 5, since: 4))) == [])
        #expect(dialogue.at(5, .network(Dialogue.online("d", epoch: 6, since: 5))) == [])
        #expect(dialogue.at(6, .succeeds(3)) == [])
        #expect(dialogue.summaries.map(\.outcome) == [.superseded, .superseded, .changed])
    }

    @Test("ends nevertheless when the network is lost, and when the machine slept")
    func gone() {
        let lost = third()
        _ = lost.at(3, .network(Dialogue.online("d", epoch: 4, since: 3)))
        #expect(lost.at(4, .network(Dialogue.offline(epoch: 4, since: 4))) == [.cancels(3)])
        let slept = third()
        _ = slept.at(3, .network(Dialogue.online("d", epoch: 4, since: 3)))
        _ = slept.at(4, .network(Dialogue.online("c", epoch: 5, since: 4)))
        #expect(slept.at(5, .woke, .network(Dialogue.online("c", epoch: 6, since: 5))) == [.cancels(3)])
    }

    @Test("firings of the operator's signal that come together are counted")
    func operation() throws {
        let dialogue = Dialogue()
        let first = Dialogue.instant(1)
        let cause = RunCause(SignalName.operation, count: 20, first: first, last: Dialogue.instant(2))
        #expect(dialogue.at(2, .received([cause])) == [.starts(1, ["operator"])])
        #expect(try #require(dialogue.orders.last).causes == [cause])
    }
}
