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

extension RecordStore {
    /// Records which hooks the pipelines have from now on, and returns the stored records by pipeline and hook. Records
    /// of other hooks of these pipelines are deleted. A new hook is recorded durably, because its record has the
    /// content for which the hook need not run.
    package func assignHooks(_ all: [PipelineHooks]) throws(CacheError) -> [String: [String: StoredHookState]] {
        let found = try context.withIndex { (index) throws(SQLiteError) in try index.hooks.all() }
        var known: [String: [String: StoredHookState]] = [:]
        for (pipeline, hook, record) in found { known[pipeline, default: [:]][hook] = record }
        var result: [String: [String: StoredHookState]] = [:]
        var added: [(pipeline: String, hook: String, notified: GenerationIdentity?)] = []
        var removed: [(pipeline: String, hook: String)] = []
        for pipeline in all {
            var before = known[pipeline.pipeline] ?? [:]
            for hook in pipeline.hooks {
                let record = before.removeValue(forKey: hook)
                if record == nil { added.append((pipeline.pipeline, hook, pipeline.notified)) }
                result[pipeline.pipeline, default: [:]][hook] = record ?? StoredHookState(notified: pipeline.notified)
            }
            removed += before.keys.sorted().map { (pipeline.pipeline, $0) }
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
        try CacheName.check(pipeline)
        try context.transaction { (index) throws(SQLiteError) in
            try index.hooks.update(hook, to: record, of: try index.pipelines.ensure(pipeline).id)
        }
    }
}
