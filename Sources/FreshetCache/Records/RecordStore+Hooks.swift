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
    /// - Parameter kept: the identifiers of hooks whose records stay, because their pipelines are unknown now.
    package func assignHooks(
        _ all: [PipelineHooks], keeping kept: Set<String> = []
    ) throws(CacheError) -> [String: [String: StoredHookState]] {
        let found = try context.withIndex { (index) throws(SQLiteError) in try index.hooks.all() }
        var known: [String: [String: StoredHookState]] = [:]
        for (pipeline, hook, record) in found { known[pipeline, default: [:]][hook] = record }
        var result: [String: [String: StoredHookState]] = [:]
        var added: [(pipeline: String, hook: String, notified: GenerationIdentity?)] = []
        var removed: [(pipeline: String, hook: String)] = []
        for pipeline in all {
            let before = known[pipeline.pipeline] ?? [:]
            let gone = before.keys.filter { !pipeline.hooks.contains($0) && !kept.contains($0) }.sorted()
            let notified = pipeline.notified(replacing: gone.compactMap { before[$0] })
            for hook in pipeline.hooks {
                if before[hook] == nil { added.append((pipeline.pipeline, hook, notified)) }
                result[pipeline.pipeline, default: [:]][hook] = before[hook] ?? StoredHookState(notified: notified)
            }
            removed += gone.map { (pipeline.pipeline, $0) }
        }
        guard !added.isEmpty || !removed.isEmpty else { return result }
        try context.transaction(isDurable: !added.isEmpty) { [added, removed] (index) throws(SQLiteError) in
            for (pipeline, hook) in removed { try index.hooks.forget(hook, of: pipeline) }
            for (pipeline, hook, notified) in added {
                try index.hooks.add(hook, notified: notified, of: try index.pipelines.ensure(pipeline).id)
            }
        }
        return result
    }

    /// Records the state of a hook. A power cut may undo the last seconds; then the hook is pending again.
    package func record(_ record: StoredHookState, of hook: String, of pipeline: String) throws(CacheError) {
        try self.record([(pipeline, record)], of: hook)
    }

    /// Records the states that a hook has for several pipelines: all of them, or none.
    package func record(
        _ records: [(pipeline: String, state: StoredHookState)], of hook: String
    ) throws(CacheError) {
        for record in records { try CacheName.check(record.pipeline) }
        try context.transaction { (index) throws(SQLiteError) in
            for record in records {
                try index.hooks.update(hook, to: record.state, of: try index.pipelines.ensure(record.pipeline).id)
            }
        }
    }
}
