import Testing

@testable import FreshetPipelines

@Suite("An origin known by name, without a route to elsewhere")
struct DirectNetworkTests {
    private let policy = RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .seconds(1), to: .seconds(1)))

    private func offline() -> Dialogue { Dialogue(policy, network: Dialogue.offline()) }

    private func fails(_ run: UInt64, isRouted: Bool) -> Dialogue.Event {
        var failure = RunFailure(.connection, "could not connect")
        failure.isRouted = isRouted
        return .ended(run: run, .failed(failure))
    }

    @Test("is looked for once, and then after each change of the directly connected networks")
    func once() {
        let talk = offline()
        #expect(talk.at(0, .hears("start", at: 0)) == [])
        #expect(talk.waitsFor == Wait(.network))
        #expect(talk.at(1, .directNetworks(1)) == [.starts(1, ["start"])])
        #expect(talk.orders[0].reason == .routingSaysNo)
        #expect(talk.at(2, fails(1, isRouted: false)) == [])
        #expect(talk.waitsFor == Wait(.network))
        #expect(talk.at(3, .directNetworks(1)) == [])
        #expect(talk.pass(until: 1_000) == [])
        #expect(talk.at(1_000, .directNetworks(nil)) == [])
        #expect(talk.at(1_001, .directNetworks(2)) == [.starts(2, ["start"])])
        #expect(talk.summaries.allSatisfy { !$0.counts })
    }

    @Test("is looked for at most every five seconds, however often the networks change")
    func gap() {
        let talk = offline()
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(0, .directNetworks(1)) == [.starts(1, ["start"])])
        _ = talk.at(1, fails(1, isRouted: false))
        for revision: UInt64 in 2...20 { #expect(talk.at(1, .directNetworks(revision)) == []) }
        #expect(talk.pass(until: 60) == [.init(at: 5, deed: .starts(2, ["start"]))])
    }

    @Test("that was found is asked like any other, until the networks change")
    func found() {
        let talk = offline()
        _ = talk.at(0, .directNetworks(1), .hears("start", at: 0))
        _ = talk.at(1, .succeeds(1))
        #expect(talk.activity == .loaded)
        #expect(talk.at(10, .hears("file", at: 10)) == [.starts(2, ["file"])])
        #expect(talk.orders[1].reason == .signals)
        _ = talk.at(11, .succeeds(2))
        _ = talk.at(12, .directNetworks(nil))
        #expect(talk.at(20, .hears("file", at: 20)) == [])
        #expect(talk.waitsFor == Wait(.network))
    }

    @Test("with a route to its address has failed when it cannot be reached, and is tried again")
    func routed() {
        let talk = offline()
        _ = talk.at(0, .directNetworks(1), .hears("start", at: 0))
        _ = talk.at(1, fails(1, isRouted: true))
        #expect(talk.summaries.last?.counts == true)
        #expect(talk.pass(until: 10).map(\.deed) == [.starts(2, ["start"])])
    }

    @Test("is not looked for with a route to elsewhere")
    func elsewhere() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .directNetworks(1))
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.orders.map(\.reason) == [.signals])
        #expect(talk.at(1, .network(Dialogue.offline(since: 1))) == [.cancels(1)])
    }

    @Test("is cancelled and asked anew when a route to elsewhere appears meanwhile")
    func regained() {
        let talk = offline()
        _ = talk.at(0, .directNetworks(1), .hears("start", at: 0))
        #expect(talk.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.cancels(1)])
        #expect(talk.at(1, .ended(run: 1, .cancelled)).contains(.starts(2, ["start"])))
    }
}
