import Testing

@testable import FreshetPipelines

@Suite("An origin known by name, without a route to the target")
struct DirectNetworkTests {
    private let policy = RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .seconds(1), to: .seconds(1)))

    private func offline() -> Dialogue { Dialogue(policy, network: Dialogue.offline()) }

    private func fails(_ run: UInt64, isRouted: Bool) -> Dialogue.Event {
        var failure = RunFailure(.connection, "could not connect")
        failure.isRouted = isRouted
        return .ended(run: run, .failed(failure))
    }

    @Test("is tried once, and then after each change of the directly connected networks")
    func once() {
        let dialogue = offline()
        #expect(dialogue.at(0, .receives("start", at: 0)) == [])
        #expect(dialogue.waitsFor == Wait(.network))
        #expect(dialogue.at(1, .directNetworks(1)) == [.starts(1, ["start"])])
        #expect(dialogue.orders[0].reason == .noRoute)
        #expect(dialogue.at(2, fails(1, isRouted: false)) == [])
        #expect(dialogue.waitsFor == Wait(.network))
        #expect(dialogue.at(3, .directNetworks(1)) == [])
        #expect(dialogue.pass(until: 1_000) == [])
        #expect(dialogue.at(1_000, .directNetworks(nil)) == [])
        #expect(dialogue.at(1_001, .directNetworks(2)) == [.starts(2, ["start"])])
        #expect(dialogue.summaries.allSatisfy { !$0.counts })
    }

    @Test("is tried at most every five seconds, however often the networks change")
    func gap() {
        let dialogue = offline()
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(0, .directNetworks(1)) == [.starts(1, ["start"])])
        _ = dialogue.at(1, fails(1, isRouted: false))
        for revision: UInt64 in 2...20 { #expect(dialogue.at(1, .directNetworks(revision)) == []) }
        #expect(dialogue.pass(until: 60) == [.init(at: 5, output: .starts(2, ["start"]))])
    }

    @Test("that was found is fetched like any other, until the networks change")
    func found() {
        let dialogue = offline()
        _ = dialogue.at(0, .directNetworks(1), .receives("start", at: 0))
        _ = dialogue.at(1, .succeeds(1))
        #expect(dialogue.activity == .loaded)
        #expect(dialogue.at(10, .receives("file", at: 10)) == [.starts(2, ["file"])])
        #expect(dialogue.orders[1].reason == .signals)
        _ = dialogue.at(11, .succeeds(2))
        _ = dialogue.at(12, .directNetworks(nil))
        #expect(dialogue.at(20, .receives("file", at: 20)) == [])
        #expect(dialogue.waitsFor == Wait(.network))
    }

    @Test("with a route to its address has failed when it cannot be reached, and is retried")
    func routed() {
        let dialogue = offline()
        _ = dialogue.at(0, .directNetworks(1), .receives("start", at: 0))
        _ = dialogue.at(1, fails(1, isRouted: true))
        #expect(dialogue.summaries.last?.counts == true)
        #expect(dialogue.pass(until: 10).map(\.output) == [.starts(2, ["start"])])
    }

    @Test("is not tried while there is a route to the target")
    func elsewhere() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .directNetworks(1))
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.orders.map(\.reason) == [.signals])
        #expect(dialogue.at(1, .network(Dialogue.offline(since: 1))) == [.cancels(1)])
    }

    @Test("is cancelled and fetched again when a route to the target appears meanwhile")
    func regained() {
        let dialogue = offline()
        _ = dialogue.at(0, .directNetworks(1), .receives("start", at: 0))
        #expect(dialogue.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.cancels(1)])
        #expect(dialogue.at(1, .ended(run: 1, .cancelled)).contains(.starts(2, ["start"])))
    }
}
