import FreshetPipelines
import FreshetSystemSignals
import Testing

@testable import FreshetDaemon

@Suite("What decides which sources a pipeline uses")
struct SignalNeedsTests {
    private func definition(
        _ name: String, _ refresh: RefreshPolicy = RefreshPolicy(), parameters: [ParameterDefinition] = []
    ) -> PipelineDefinition {
        PipelineDefinition(
            name: name, source: .file("/dev/null"), refresh: refresh, cache: CacheRules(file: name),
            parameters: parameters)
    }

    @Test("pipelines that share a policy and a target have the same needs; others are looked up")
    func needs() throws {
        let first = definition("a")
        var second = definition("b")
        let needs = SignalNeeds(first, target: .elsewhere)
        #expect(!needs.isCertainlyEqual(to: SignalNeeds(second, target: .elsewhere)))
        second.share(with: first)
        #expect(needs.isCertainlyEqual(to: SignalNeeds(second, target: .elsewhere)))
        let address = NetworkTarget.address(try #require(IPAddress("192.0.2.1")))
        #expect(!needs.isCertainlyEqual(to: SignalNeeds(second, target: address)))
        second.parameters = [ParameterDefinition("p", default: "1")]
        #expect(!needs.isCertainlyEqual(to: SignalNeeds(second, target: .elsewhere)))
    }

    @Test("a pipeline that is shared with other machines has its own signal")
    func fleet() {
        var first = definition("a")
        first.fleet = FleetSharing()
        var second = definition("b")
        second.fleet = FleetSharing()
        second.share(with: first)
        let needs = SignalNeeds(first, target: .elsewhere)
        #expect(needs.fleetMember == "a")
        #expect(!needs.isCertainlyEqual(to: SignalNeeds(second, target: .elsewhere)))
        second.fleet = nil
        #expect(!needs.isCertainlyEqual(to: SignalNeeds(second, target: .elsewhere)))
    }
}
