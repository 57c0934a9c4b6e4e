import FreshetModel
import FreshetPipelines
import FreshetSystemSignals
import Testing

@testable import FreshetDaemon

@Suite("The network target of a pipeline")
struct NetworkSourceTests {
    private func definition(_ source: SourceDefinition, _ need: NetworkNeed = .bySource) -> PipelineDefinition {
        PipelineDefinition(
            name: "test", source: source, refresh: RefreshPolicy(needsNetwork: need), cache: CacheRules(file: "test"))
    }

    private func http(_ host: String) -> SourceDefinition {
        .http(HTTPSource(url: "https://\(host)/", host: host))
    }

    private func target(_ definition: PipelineDefinition, daemon: String? = nil) -> String {
        NetworkTarget(definition, daemonTarget: daemon).description
    }

    @Test("the address that the pipeline names comes first, then its origin's, then the daemon's, then elsewhere")
    func order() {
        let named = NetworkNeed.address("198.51.100.7")
        #expect(target(definition(http("192.0.2.1"), named), daemon: "203.0.113.9") == "198.51.100.7")
        #expect(target(definition(http("192.0.2.1")), daemon: "203.0.113.9") == "192.0.2.1")
        #expect(target(definition(http("2001:db8::5"))) == "2001:db8::5")
        #expect(target(definition(http("example.com")), daemon: "203.0.113.9") == "203.0.113.9")
        #expect(target(definition(http("example.com"))) == "elsewhere")
    }

    @Test("an origin on this machine is not a target: such a pipeline has the target elsewhere")
    func local() {
        #expect(target(definition(http("127.0.0.1"), .yes)) == "elsewhere")
        #expect(target(definition(http("::1"), .yes), daemon: "203.0.113.9") == "203.0.113.9")
        #expect(target(definition(.command(["/bin/true"]), .yes)) == "elsewhere")
        #expect(target(definition(.file("/etc/hosts"), .address("192.0.2.1"))) == "192.0.2.1")
    }

    private func fact(_ path: String?, epoch: UInt64) -> NetworkFact {
        let paths = path.map {
            [NetworkPath(gateway: nil, interfaceIndex: 2, interfaceName: $0, source: IPAddress("192.0.2.7"))]
        }
        return NetworkFact(
            .elsewhere, isReachable: path != nil, paths: paths ?? [], obstacle: path == nil ? .noRoute : nil,
            changedAt: .now, epoch: epoch)
    }

    @Test("the engine's state has the same values as the fact")
    func state() {
        let fact = fact("wan0", epoch: 4)
        let state = NetworkState(fact, before: nil)
        #expect(
            state
                == NetworkState(
                    reachable: true, epoch: 4, changedAt: BootInstant(fact.changedAt), path: fact.description))
        #expect(!NetworkState(self.fact(nil, epoch: 4), before: state).reachable)
    }

    @Test("the text of the path stays during an epoch, whatever other paths change; a new epoch has a new text")
    func epochs() {
        let before = NetworkState(fact("wan0", epoch: 4), before: nil)
        #expect(NetworkState(fact("wan0, wan1", epoch: 4), before: before).path == before.path)
        #expect(NetworkState(fact("wan1", epoch: 5), before: before).path == fact("wan1", epoch: 5).description)
        let lost = NetworkState(fact(nil, epoch: 4), before: before)
        #expect(lost.path == "no route")
        // Reachable again in the same epoch: there was no path meanwhile.
        #expect(NetworkState(fact("wan1", epoch: 4), before: lost).path == fact("wan1", epoch: 4).description)
    }

    @Test("each target has its row among the signals")
    func rows() throws {
        #expect(NetworkSource.name(of: .elsewhere) == "network")
        #expect(NetworkSource.name(of: .address(try #require(IPAddress("192.0.2.1")))) == "network 192.0.2.1")
    }
}
