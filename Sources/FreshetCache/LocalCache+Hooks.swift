package import FreshetModel

/// The content for which a hook runs: a generation that readers find, or one that was withdrawn.
package struct HookContent: Hashable, Sendable {
    package var content: StoredContent
    package var isWithdrawn: Bool

    package init(_ content: StoredContent, isWithdrawn: Bool = false) {
        self.content = content
        self.isWithdrawn = isWithdrawn
    }
}

/// The state of a hook that is kept across restarts.
package struct HookRecord: Hashable, Sendable {
    /// The content of the last success; nil if there was none.
    package var notified: HookContent?
    /// The content of the attempts since then; nil if there was none.
    package var tried: HookContent?
    /// The number of failed attempts for `tried`.
    package var attempts: Int64
    /// When the first attempt since the last success failed.
    package var failingSince: WallTime?
    /// Why the last attempt failed; a text longer than ``CacheLimits/runTextBytes`` is cut.
    package var error: String?

    package init(
        notified: HookContent? = nil, tried: HookContent? = nil, attempts: Int64 = 0, failingSince: WallTime? = nil,
        error: String? = nil
    ) {
        self.notified = notified
        self.tried = tried
        self.attempts = attempts
        self.failingSince = failingSince
        self.error = error
    }
}

/// The hooks of a pipeline.
package struct PipelineHooks: Hashable, Sendable {
    package var pipeline: String
    /// The identifiers of the hooks.
    package var hooks: [String]
    /// The content that new hooks count as notified of.
    package var notified: HookContent?

    package init(pipeline: String, hooks: [String], notified: HookContent?) {
        self.pipeline = pipeline
        self.hooks = hooks
        self.notified = notified
    }
}

extension LocalCache {
    /// Records which hooks the pipelines have from now on, and returns the stored records by pipeline and hook. Records
    /// of other hooks of these pipelines are deleted. A new hook is recorded durably, because its record has the
    /// content for which the hook need not run.
    package func assignHooks(_ all: [PipelineHooks]) throws(CacheError) -> [String: [String: HookRecord]] {
        let found = try withIndex { (index) throws(SQLiteError) in try index.hooks() }
        var known: [String: [String: HookRecord]] = [:]
        for (pipeline, hook, record) in found { known[pipeline, default: [:]][hook] = record }
        var result: [String: [String: HookRecord]] = [:]
        var added: [(pipeline: String, hook: String, notified: HookContent?)] = []
        var removed: [(pipeline: String, hook: String)] = []
        for pipeline in all {
            var before = known[pipeline.pipeline] ?? [:]
            for hook in pipeline.hooks {
                let record = before.removeValue(forKey: hook)
                if record == nil { added.append((pipeline.pipeline, hook, pipeline.notified)) }
                result[pipeline.pipeline, default: [:]][hook] = record ?? HookRecord(notified: pipeline.notified)
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
    package func record(_ record: HookRecord, of hook: String, of pipeline: String) throws(CacheError) {
        try CacheName.check(pipeline)
        try transaction { (index) throws(SQLiteError) in
            try index.update(hook, to: record, of: try index.ensurePipeline(pipeline).id)
        }
    }

    /// The history entry of a generation, and the path of its content; the path is nil if the content is no longer
    /// kept.
    package func find(
        _ content: StoredContent, of pipeline: String
    ) throws(CacheError) -> (generation: PastGeneration, path: String?)? {
        let past = try history(pipeline).first { $0.number == content.number && $0.digest == content.digest }
        return past.map { ($0, $0.isKept ? layout.generation(content, of: pipeline) : nil) }
    }
}
