import FreshetCache
import FreshetConfiguration
import FreshetModel
import FreshetPipelines

/// Gives pipelines their hooks, so that they run after changes, and pending hooks run immediately.
@DaemonActor
final class HookAssigner {
    /// Returns the current or withdrawn generation of a pipeline.
    typealias Current = (_ pipeline: String) -> CurrentGeneration?

    let scheduler: HookScheduler
    private let context: DaemonContext
    private let store: CacheStore
    /// The index is new, so the last successful runs of hooks are unknown.
    private var isStateLost: Bool
    /// The hooks of several pipelines.
    private var shared: [SharedHookDefinition] = []
    /// The identities of those hooks, by pipeline.
    private var sharedByPipeline: [String: [String]] = [:]
    /// The pipelines with stored states of such hooks.
    private var sharing: Set<String> = []
    /// The identities of hooks whose file has errors: their states stay until the file is repaired or removed.
    private var invalid: Set<String> = []

    /// The name of ``assign(_:_:)`` in the log.
    private static let job = "assignment of hooks"

    init(_ context: DaemonContext, _ scheduler: HookScheduler, _ store: CacheStore, isStateLost: Bool) {
        self.context = context
        self.scheduler = scheduler
        self.store = store
        self.isStateLost = isStateLost
    }

    /// Sets the hooks of several pipelines, for the assignments that follow.
    ///
    /// - Returns: whether anything has changed. Then all pipelines have to be assigned.
    @discardableResult
    func use(_ configuration: Configuration) -> Bool {
        let invalid = Set(configuration.invalidHooks.keys.map { SharedHookDefinition.identity(of: $0) })
        guard shared != configuration.hooks || invalid != self.invalid else { return false }
        self.invalid = invalid
        shared = configuration.hooks
        sharedByPipeline = [:]
        for hook in shared {
            for pipeline in hook.pipelines { sharedByPipeline[pipeline, default: []].append(hook.identity) }
        }
        scheduler.useShared(shared)
        return true
    }

    /// The identities of the hooks of several pipelines that this pipeline has.
    func shared(of pipeline: String) -> [String] { sharedByPipeline[pipeline] ?? [] }

    /// Whether the file of a hook has errors.
    var hasInvalid: Bool { !invalid.isEmpty }

    /// Sets the hooks of these pipelines.
    func assign(_ definitions: [PipelineDefinition], _ current: Current) async {
        await assign(definitions, current, areNew: false)
    }

    /// - Parameter areNew: the scheduler knows none of the pipelines.
    private func assign(_ definitions: [PipelineDefinition], _ current: Current, areNew: Bool) async {
        guard !definitions.isEmpty else { return }
        // With a new index, the last successful runs of hooks are unknown, so the hooks run again for the current
        // generations.
        var all: [PipelineHooks] = []
        all.reserveCapacity(definitions.count)
        for (index, definition) in definitions.enumerated() {
            await context.giveWay(before: index, Self.job)
            all.append(
                PipelineHooks(
                    pipeline: definition.name,
                    hooks: definition.hooks.map(\.identity) + (sharedByPipeline[definition.name] ?? []),
                    notified: isStateLost ? nil : self.current(definition, current)?.identity))
        }
        // If the stored states cannot be read, the hooks run again: they may be pending.
        let memories =
            await store.assignHooks(all, keeping: invalid)
            ?? Dictionary(
                all.map { ($0.pipeline, Dictionary($0.hooks.map { ($0, StoredHookState()) }) { first, _ in first }) }
            ) { first, _ in first }
        for (index, definition) in definitions.enumerated() {
            // A pending hook of several pipelines must not run before all of them have it.
            if sharedByPipeline.isEmpty { await context.giveWay(before: index, Self.job) }
            // Most pipelines have no hooks.
            if areNew, definition.hooks.isEmpty, sharedByPipeline[definition.name] == nil { continue }
            if sharedByPipeline[definition.name] != nil {
                sharing.insert(definition.name)
            } else {
                sharing.remove(definition.name)
            }
            // The current generation is read again, because a run may have committed meanwhile.
            scheduler.configure(
                definition, shared: sharedByPipeline[definition.name] ?? [], memories[definition.name] ?? [:],
                current: self.current(definition, current))
        }
    }

    /// Sets the hooks of all pipelines at the start.
    func assignAll(_ definitions: [PipelineDefinition], _ current: Current) async {
        await assign(definitions, current, areNew: true)
        isStateLost = false
    }

    /// Removes the hooks of a pipeline that is not configured any more. If the pipeline is added again, its hooks are
    /// new.
    func forget(_ definition: PipelineDefinition) async {
        let hasShared = sharing.remove(definition.name) != nil
        guard !definition.hooks.isEmpty || hasShared || !invalid.isEmpty else { return }
        _ = await store.assignHooks([PipelineHooks(pipeline: definition.name, hooks: [], notified: nil)], keeping: [])
    }

    private func current(_ definition: PipelineDefinition, _ current: Current) -> CurrentGeneration? {
        definition.hooks.isEmpty && sharedByPipeline[definition.name] == nil ? nil : current(definition.name)
    }
}
