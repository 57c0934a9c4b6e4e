package import FreshetModel

/// The hooks of a pipeline.
package struct PipelineHooks: Hashable, Sendable {
    package var pipeline: String
    /// The identifiers of the hooks.
    package var hooks: [String]
    /// The content that new hooks count as notified of.
    package var notified: GenerationIdentity?

    package init(pipeline: String, hooks: [String], notified: GenerationIdentity?) {
        self.pipeline = pipeline
        self.hooks = hooks
        self.notified = notified
    }
}

extension PipelineHooks {
    /// The content that new hooks count as notified of, if they replace these: that of the first pending one.
    fileprivate func notified(replacing hooks: [StoredHookState]) -> GenerationIdentity? {
        guard let notified, let pending = hooks.first(where: { $0.isPending(notified) }) else { return notified }
        // An attempt for other content has perhaps undone the effect of the successful run.
        return pending.notified == notified ? nil : pending.notified
    }
}

extension RecordStore {
    /// Records which hooks the pipelines have from now on, and returns the stored records by pipeline and hook. Records
    /// of other hooks of these pipelines are deleted. A new hook is recorded durably, because its record has the
    /// content for which the hook need not run.
    ///
    /// A new hook is pending if a hook that is no longer configured was pending: its command has perhaps been corrected.
    ///
    /// If the index has no space, or is locked, the changes wait for the next transaction, and no later change of any
    /// content is stored before them.
    ///
    /// - Parameter kept: the identifiers of hooks whose records stay, because their pipelines are unknown now.
    /// - Throws: an error if the records cannot be read.
    package func assignHooks(
        _ all: [PipelineHooks], keeping kept: Set<String> = []
    ) throws(CacheError) -> [String: [String: StoredHookState]] {
        let known = try records()
        var result: [String: [String: StoredHookState]] = [:]
        var (changes, isDurable): ([HookKey: HookChange], Bool) = ([:], false)
        for pipeline in all {
            let before = known[pipeline.pipeline] ?? [:]
            let gone = before.keys.filter { !pipeline.hooks.contains($0) && !kept.contains($0) }.sorted()
            let notified = pipeline.notified(replacing: gone.compactMap { before[$0] })
            for hook in pipeline.hooks {
                let state = before[hook] ?? StoredHookState(notified: notified)
                result[pipeline.pipeline, default: [:]][hook] = state
                guard before[hook] == nil else { continue }
                changes[HookKey(pipeline: pipeline.pipeline, hook: hook)] = .added(state)
                isDurable = true
            }
            for hook in gone { changes[HookKey(pipeline: pipeline.pipeline, hook: hook)] = .removed }
        }
        try store(changes, isDurable: isDurable)
        return result
    }

    /// The records of all hooks, by pipeline and hook.
    private func records() throws(CacheError) -> [String: [String: StoredHookState]] {
        // A record that waits is newer than the stored one.
        let (found, waiting) = try context.withIndex { (index) throws(SQLiteError) in
            (try index.hooks.all(), context.index.deferred.hooks)
        }
        var known: [String: [String: StoredHookState]] = [:]
        for (pipeline, hook, record) in found { known[pipeline, default: [:]][hook] = record }
        for (key, change) in waiting {
            switch change {
            case .added(let state): known[key.pipeline, default: [:]][key.hook] = state
            case .updated(let state) where known[key.pipeline]?[key.hook] != nil: known[key.pipeline]?[key.hook] = state
            case .updated: break  // the hook is not configured
            case .removed: known[key.pipeline]?[key.hook] = nil
            }
        }
        return known
    }

    /// Stores changes of hooks now. If there is no space, or another process has locked the index, they wait for the
    /// next transaction.
    private func store(_ changes: [HookKey: HookChange], isDurable: Bool = false) throws(CacheError) {
        guard !changes.isEmpty else { return }
        context.index.deferred.append(changes)
        do throws(CacheError) {
            // Another caller's transaction may have stored them already, which need not be durable. So the log is flushed,
            // and not only a transaction.
            if isDurable { try context.sharedDurableTransaction { _ in } } else { try context.transaction { _ in } }
        } catch  where error.isTransient {
            // They wait, and are counted among those that do.
            context.index.uncountFailure()
        }
    }

    /// Records the state of a hook. A power cut may undo the last seconds; then the hook is pending again. If there is no
    /// space, the state waits for the next transaction.
    package func record(_ record: StoredHookState, of hook: String, of pipeline: String) throws(CacheError) {
        try self.record([(pipeline, record)], of: hook)
    }

    /// Records the states that a hook has for several pipelines: all of them, or none.
    package func record(
        _ records: [(pipeline: String, state: StoredHookState)], of hook: String
    ) throws(CacheError) {
        for record in records { try CacheName.check(record.pipeline) }
        let changes = records.map { (HookKey(pipeline: $0.pipeline, hook: hook), HookChange.updated($0.state)) }
        try store(Dictionary(changes) { $1 })
    }
}
