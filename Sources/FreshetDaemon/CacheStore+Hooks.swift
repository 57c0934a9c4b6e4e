import FreshetCache
import FreshetEventLoop
import FreshetPipelines
import Glibc

/// What is remembered of hooks.
extension CacheStore {
    /// Notes the hooks that pipelines have from now on, and returns what is remembered of them.
    func assignHooks(
        _ all: [(pipeline: String, hooks: [HookDefinition], told: GenerationIdentity?)]
    ) async -> [String: [String: StoredHookState]] {
        let hooks = all.map {
            PipelineHooks(
                pipeline: $0.pipeline, hooks: $0.hooks.map(\.identity), told: $0.told.flatMap(HookContent.init))
        }
        return await workers.run("index") { [self] in
            do throws(CacheError) {
                return try cache.assignHooks(hooks).mapValues { $0.mapValues(StoredHookState.init) }
            } catch {
                for pipeline in hooks where !pipeline.hooks.isEmpty { report(pipeline.pipeline, error) }
                return [:]
            }
        }
    }

    func remember(_ memory: StoredHookState, of hook: String, of pipeline: String) async {
        await workers.run("index") { [self] in
            do throws(CacheError) {
                try cache.record(HookRecord(memory), of: hook, of: pipeline)
            } catch {
                report(pipeline, error)
            }
        }
    }

    /// The content of a generation; nil: it is not kept any more, is not whole, or is larger than the limit, in bytes.
    func content(_ mark: GenerationIdentity, of pipeline: String, limit: Int) async -> [UInt8]? {
        guard let stored = HookContent(mark)?.content else { return nil }
        return await readers.run("generation") { [cache] in
            do throws(CacheError) {
                let myself = FreshetCache.FileReader(user: geteuid(), groups: [getegid()])
                guard try cache.find(stored, of: pipeline)?.path != nil,
                    let content = try cache.open(stored.number, of: pipeline, for: myself)
                else { return nil }
                var bytes: [UInt8] = []
                while case let piece = try content.read(1 << 16), !piece.isEmpty {
                    bytes += piece
                    guard bytes.count <= limit else { return nil }
                }
                return bytes
            } catch {
                return nil
            }
        }
    }

    /// What is known of a generation, and where its content is; nil: nothing.
    func find(
        _ mark: GenerationIdentity?, of pipeline: String
    ) async -> (generation: FreshetCache.PastGeneration, path: String?)? {
        guard let content = mark.flatMap(HookContent.init)?.content else { return nil }
        return await workers.run("index") { [self] in
            // It is told without, if the index fails.
            (try? cache.find(content, of: pipeline)) ?? nil
        }
    }
}

extension HookContent {
    fileprivate init?(_ mark: GenerationIdentity) {
        guard let digest = ContentDigest(hexadecimal: mark.digest) else { return nil }
        self.init(
            StoredContent(number: Int64(clamping: mark.number), digest: digest), isWithdrawn: mark.isWithdrawn)
    }
}

extension GenerationIdentity {
    fileprivate init(_ told: HookContent) {
        self.init(
            number: UInt64(clamping: told.content.number), digest: told.content.digest.description,
            isWithdrawn: told.isWithdrawn)
    }
}

extension StoredHookState {
    init(_ record: HookRecord) {
        self.init(
            told: record.told.map(GenerationIdentity.init), tried: record.tried.map(GenerationIdentity.init),
            attempts: Int(clamping: record.attempts), failingSince: record.failingSince?.microseconds,
            error: record.error)
    }
}

extension HookRecord {
    fileprivate init(_ memory: StoredHookState) {
        self.init(
            told: memory.told.flatMap(HookContent.init), tried: memory.tried.flatMap(HookContent.init),
            attempts: Int64(memory.attempts), failingSince: memory.failingSince.map(WallTime.init(microseconds:)),
            error: memory.error)
    }
}
