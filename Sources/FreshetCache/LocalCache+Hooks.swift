/// What a hook is told of: that readers find a generation, or that it was withdrawn from them.
package struct HookContent: Hashable, Sendable {
    package var content: StoredContent
    package var isWithdrawn: Bool

    package init(_ content: StoredContent, isWithdrawn: Bool = false) {
        self.content = content
        self.isWithdrawn = isWithdrawn
    }
}

/// What is remembered of a hook across restarts.
package struct HookRecord: Hashable, Sendable {
    /// What it was told of last with success; nil: nothing yet.
    package var told: HookContent?
    /// What an attempt since then was for; nil: there was none.
    package var tried: HookContent?
    /// How many attempts for that have failed.
    package var attempts: Int64
    /// When the first attempt failed since it last succeeded.
    package var failingSince: WallTime?
    /// Why the last attempt failed; longer than ``CacheLimits/runTextBytes`` it is cut.
    package var error: String?

    package init(
        told: HookContent? = nil, tried: HookContent? = nil, attempts: Int64 = 0, failingSince: WallTime? = nil,
        error: String? = nil
    ) {
        self.told = told
        self.tried = tried
        self.attempts = attempts
        self.failingSince = failingSince
        self.error = error
    }
}

/// The hooks that a pipeline has.
package struct PipelineHooks: Hashable, Sendable {
    package var pipeline: String
    /// What they are known by.
    package var hooks: [String]
    /// What those are said to know already that are new.
    package var told: HookContent?

    package init(pipeline: String, hooks: [String], told: HookContent?) {
        self.pipeline = pipeline
        self.hooks = hooks
        self.told = told
    }
}

extension LocalCache {
    /// Notes which hooks pipelines have from now on, and returns what is remembered of them, by pipeline and hook. What
    /// is remembered of other hooks of these pipelines is forgotten. That a hook is new outlasts a power cut, for with it
    /// goes what it need not be told.
    package func assignHooks(_ all: [PipelineHooks]) throws(CacheError) -> [String: [String: HookRecord]] {
        let found = try withIndex { (index) throws(SQLiteError) in try index.hooks() }
        var known: [String: [String: HookRecord]] = [:]
        for (pipeline, hook, record) in found { known[pipeline, default: [:]][hook] = record }
        var result: [String: [String: HookRecord]] = [:]
        var added: [(pipeline: String, hook: String, told: HookContent?)] = []
        var removed: [(pipeline: String, hook: String)] = []
        for pipeline in all {
            var before = known[pipeline.pipeline] ?? [:]
            for hook in pipeline.hooks {
                let record = before.removeValue(forKey: hook)
                if record == nil { added.append((pipeline.pipeline, hook, pipeline.told)) }
                result[pipeline.pipeline, default: [:]][hook] = record ?? HookRecord(told: pipeline.told)
            }
            removed += before.keys.sorted().map { (pipeline.pipeline, $0) }
        }
        guard !added.isEmpty || !removed.isEmpty else { return result }
        try transaction(isDurable: !added.isEmpty) { [added, removed] (index) throws(SQLiteError) in
            for (pipeline, hook) in removed { try index.forgetHook(hook, of: pipeline) }
            for (pipeline, hook, told) in added {
                try index.addHook(hook, told: told, of: try index.ensurePipeline(pipeline).id)
            }
        }
        return result
    }

    /// Remembers what became of a hook. A power cut may take the last seconds of it: then the hook is owed once more.
    package func record(_ record: HookRecord, of hook: String, of pipeline: String) throws(CacheError) {
        try CacheName.check(pipeline)
        try transaction { (index) throws(SQLiteError) in
            try index.update(hook, to: record, of: try index.ensurePipeline(pipeline).id)
        }
    }

    /// What is known of a generation, and where its content is; no path if it is not kept any more.
    package func find(
        _ content: StoredContent, of pipeline: String
    ) throws(CacheError) -> (generation: PastGeneration, path: String?)? {
        let past = try history(pipeline).first { $0.number == content.number && $0.digest == content.digest }
        return past.map { ($0, $0.isKept ? layout.generation(content, of: pipeline) : nil) }
    }
}
