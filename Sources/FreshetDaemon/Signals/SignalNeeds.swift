import FreshetPipelines
import FreshetSystemSignals

/// What decides which sources a pipeline uses. Thousands of pipelines often have equal needs, so the sources are looked
/// up once for all of them (``SignalRegistry/subscribe(_:)``).
struct SignalNeeds: Equatable, Sendable {
    @Shared private(set) var refresh: RefreshPolicy
    /// The target of its requests.
    let target: NetworkTarget
    let hasParameters: Bool
    /// The name of a pipeline whose content is shared with other machines; nil: it is not shared.
    let fleetMember: String?

    init(_ definition: PipelineDefinition, target: NetworkTarget) {
        _refresh = definition.sharedRefresh
        self.target = target
        hasParameters = !definition.parameters.isEmpty
        fleetMember = definition.fleet == nil ? nil : definition.name
    }

    /// Whether the needs are equal, as far as that can be said without comparing the policies. Texts that are equal may
    /// have different bytes, so that they name different sources; a shared policy has the same bytes.
    func isCertainlyEqual(to other: Self) -> Bool {
        $refresh.isSame(as: other.$refresh) && target == other.target && hasParameters == other.hasParameters
            && fleetMember == other.fleetMember
    }
}
