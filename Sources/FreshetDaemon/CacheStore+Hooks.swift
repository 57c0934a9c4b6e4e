import FreshetCache
import FreshetEventLoop
import FreshetPipelines

/// What is remembered of hooks.
extension CacheStore {
    /// Notes the hooks that pipelines have from now on, and returns what is remembered of them.
    func assignHooks(
        _ all: [(pipeline: String, hooks: [HookDefinition], told: GenerationMark?)]
    ) async -> [String: [String: HookMemory]] {
        let hooks = all.map {
            PipelineHooks(
                pipeline: $0.pipeline, hooks: $0.hooks.map(\.identity), told: $0.told.flatMap(StoredContent.init))
        }
        return await workers.run("index") { [self] in
            do throws(CacheError) {
                return try cache.assignHooks(hooks).mapValues { $0.mapValues(HookMemory.init) }
            } catch {
                for pipeline in hooks where !pipeline.hooks.isEmpty { report(pipeline.pipeline, error) }
                return [:]
            }
        }
    }

    func remember(_ memory: HookMemory, of hook: String, of pipeline: String) async {
        await workers.run("index") { [self] in
            do throws(CacheError) {
                try cache.record(HookRecord(memory), of: hook, of: pipeline)
            } catch {
                report(pipeline, error)
            }
        }
    }

    /// What is known of a generation, and where its content is; nil: nothing.
    func find(
        _ mark: GenerationMark?, of pipeline: String
    ) async -> (generation: FreshetCache.PastGeneration, path: String?)? {
        guard let content = mark.flatMap(StoredContent.init) else { return nil }
        return await workers.run("index") { [self] in
            // It is told without, if the index fails.
            (try? cache.find(content, of: pipeline)) ?? nil
        }
    }
}

extension StoredContent {
    fileprivate init?(_ mark: GenerationMark) {
        guard let digest = ContentDigest(hexadecimal: mark.digest) else { return nil }
        self.init(number: Int64(clamping: mark.number), digest: digest)
    }
}

extension GenerationMark {
    fileprivate init(_ content: StoredContent) {
        self.init(number: UInt64(clamping: content.number), digest: content.digest.description)
    }
}

extension HookMemory {
    init(_ record: HookRecord) {
        self.init(
            told: record.told.map(GenerationMark.init), tried: record.tried.map(GenerationMark.init),
            attempts: Int(clamping: record.attempts), failingSince: record.failingSince?.microseconds,
            error: record.error)
    }
}

extension HookRecord {
    fileprivate init(_ memory: HookMemory) {
        self.init(
            told: memory.told.flatMap(StoredContent.init), tried: memory.tried.flatMap(StoredContent.init),
            attempts: Int64(memory.attempts), failingSince: memory.failingSince.map(WallTime.init(microseconds:)),
            error: memory.error)
    }
}
