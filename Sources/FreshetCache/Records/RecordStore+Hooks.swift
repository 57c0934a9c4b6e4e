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

extension LocalCache {
    /// Records which hooks the pipelines have from now on, and returns the stored records by pipeline and hook. Records
    /// of other hooks of these pipelines are deleted. A new hook is recorded durably, because its record has the
    /// content for which the hook need not run.
    package func assignHooks(_ all: [PipelineHooks]) throws(CacheError) -> [String: [String: StoredHookState]] {
        let found = try withIndex { (index) throws(SQLiteError) in try index.hooks() }
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
        try transaction(isDurable: !added.isEmpty) { [added, removed] (index) throws(SQLiteError) in
            for (pipeline, hook) in removed { try index.forgetHook(hook, of: pipeline) }
            for (pipeline, hook, notified) in added {
                try index.addHook(hook, notified: notified, of: try index.ensurePipeline(pipeline).id)
            }
        }
        return result
    }

    /// Records the state of a hook. A power cut may undo the last seconds; then the hook is pending again.
    package func record(_ record: StoredHookState, of hook: String, of pipeline: String) throws(CacheError) {
        try CacheName.check(pipeline)
        try transaction { (index) throws(SQLiteError) in
            try index.update(hook, to: record, of: try index.ensurePipeline(pipeline).id)
        }
    }

    /// The history entry of a generation, and the path of its content; the path is nil if the content is no longer
    /// kept.
    package func find(
        _ identity: GenerationIdentity, of pipeline: String
    ) throws(CacheError) -> (generation: PastGeneration, path: String?)? {
        let past = try history(pipeline).first { $0.number == identity.number && $0.digest == identity.digest }
        return past.map { past in
            let content = StoredContent(number: past.number, digest: past.digest)
            return (past, past.isKept ? layout.generation(content, of: pipeline) : nil)
        }
    }
}
