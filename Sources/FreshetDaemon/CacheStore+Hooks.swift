import FreshetCache
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc

/// The stored state of hooks.
extension CacheStore {
    /// Stores which hooks the pipelines have from now on, and returns the stored states of these hooks.
    func assignHooks(
        _ all: [(pipeline: String, hooks: [HookDefinition], notified: GenerationIdentity?)]
    ) async -> [String: [String: StoredHookState]] {
        let hooks = all.map {
            PipelineHooks(
                pipeline: $0.pipeline, hooks: $0.hooks.map(\.identity), notified: $0.notified.flatMap(HookContent.init))
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

    /// The content of a generation; nil: the content is not kept any more, is damaged, or has more bytes than the
    /// limit.
    func content(_ identity: GenerationIdentity, of pipeline: String, limit: Int) async -> [UInt8]? {
        guard let stored = HookContent(identity)?.content else { return nil }
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

    /// The record of a generation and the path of its content; nil: the generation is unknown.
    func find(
        _ identity: GenerationIdentity?, of pipeline: String
    ) async -> (generation: FreshetCache.PastGeneration, path: String?)? {
        guard let content = identity.flatMap(HookContent.init)?.content else { return nil }
        return await workers.run("index") { [self] in
            // If the index fails, the hook runs without this information.
            (try? cache.find(content, of: pipeline)) ?? nil
        }
    }
}

extension HookContent {
    fileprivate init?(_ identity: GenerationIdentity) {
        guard let digest = ContentDigest(hexadecimal: identity.digest) else { return nil }
        self.init(
            StoredContent(number: Int64(clamping: identity.number), digest: digest), isWithdrawn: identity.isWithdrawn)
    }
}

extension GenerationIdentity {
    fileprivate init(_ notified: HookContent) {
        self.init(
            number: UInt64(clamping: notified.content.number), digest: notified.content.digest.description,
            isWithdrawn: notified.isWithdrawn)
    }
}

extension StoredHookState {
    init(_ record: HookRecord) {
        self.init(
            notified: record.notified.map(GenerationIdentity.init), tried: record.tried.map(GenerationIdentity.init),
            attempts: Int(clamping: record.attempts), failingSince: record.failingSince?.microseconds,
            error: record.error)
    }
}

extension HookRecord {
    fileprivate init(_ memory: StoredHookState) {
        self.init(
            notified: memory.notified.flatMap(HookContent.init), tried: memory.tried.flatMap(HookContent.init),
            attempts: Int64(memory.attempts), failingSince: memory.failingSince.map(WallTime.init(microseconds:)),
            error: memory.error)
    }
}
