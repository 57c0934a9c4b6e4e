import FreshetModel
import FreshetPipelines

/// Gives pipelines their hooks, so that they run after changes, and pending hooks run immediately.
@DaemonActor
final class HookAssigner {
    /// Returns the current or withdrawn generation of a pipeline.
    typealias Current = (_ pipeline: String) -> CurrentGeneration?

    let scheduler: HookScheduler
    private let store: CacheStore
    /// The index is new, so the last successful runs of hooks are unknown.
    private var isStateLost: Bool

    init(_ scheduler: HookScheduler, _ store: CacheStore, isStateLost: Bool) {
        self.scheduler = scheduler
        self.store = store
        self.isStateLost = isStateLost
    }

    /// Sets the hooks of these pipelines.
    func assign(_ definitions: [PipelineDefinition], _ current: Current) async {
        guard !definitions.isEmpty else { return }
        // With a new index, the last successful runs of hooks are unknown, so the hooks run again for the current
        // generations.
        let all = definitions.map { definition in
            let notified = isStateLost ? nil : Self.current(definition, current)?.identity
            return (pipeline: definition.name, hooks: definition.hooks, notified: notified)
        }
        let memories = await store.assignHooks(all)
        for definition in definitions {
            // The current generation is read again, because a run may have committed meanwhile.
            scheduler.configure(
                definition, memories[definition.name] ?? [:], current: Self.current(definition, current))
        }
    }

    /// Sets the hooks of all pipelines at the start.
    func assignAll(_ definitions: [PipelineDefinition], _ current: Current) async {
        await assign(definitions, current)
        isStateLost = false
    }

    /// Removes the hooks of a pipeline that is not configured any more. If the pipeline is added again, its hooks are
    /// new.
    func forget(_ definition: PipelineDefinition) async {
        guard !definition.hooks.isEmpty else { return }
        _ = await store.assignHooks([(pipeline: definition.name, hooks: [], notified: nil)])
    }

    private static func current(_ definition: PipelineDefinition, _ current: Current) -> CurrentGeneration? {
        definition.hooks.isEmpty ? nil : current(definition.name)
    }
}
