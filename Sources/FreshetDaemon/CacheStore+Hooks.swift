import FreshetCache
import FreshetEventLoop
import FreshetPipelines
import Glibc

/// What is remembered of hooks.
extension CacheStore {
    /// Notes the hooks that pipelines have from now on, and returns what is remembered of them.
    func assignHooks(
        _ all: [(pipeline: String, hooks: [HookDefinition], told: GenerationMark?)]
    ) async -> [String: [String: HookMemory]] {
        let hooks = all.map {
            PipelineHooks(
                pipeline: $0.pipeline, hooks: $0.hooks.map(\.identity), told: $0.told.flatMap(ToldContent.init))
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

    /// The content of a generation; nil: it is not kept any more, is not whole, or is larger than the limit, in bytes.
    func content(_ mark: GenerationMark, of pipeline: String, limit: Int) async -> [UInt8]? {
        guard let stored = ToldContent(mark)?.content else { return nil }
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
        _ mark: GenerationMark?, of pipeline: String
    ) async -> (generation: FreshetCache.PastGeneration, path: String?)? {
        guard let content = mark.flatMap(ToldContent.init)?.content else { return nil }
        return await workers.run("index") { [self] in
            // It is told without, if the index fails.
            (try? cache.find(content, of: pipeline)) ?? nil
        }
    }
}

extension ToldContent {
    fileprivate init?(_ mark: GenerationMark) {
        guard let digest = ContentDigest(hexadecimal: mark.digest) else { return nil }
        self.init(
            StoredContent(number: Int64(clamping: mark.number), digest: digest), isWithdrawn: mark.isWithdrawn)
    }
}

extension GenerationMark {
    fileprivate init(_ told: ToldContent) {
        self.init(
            number: UInt64(clamping: told.content.number), digest: told.content.digest.description,
            isWithdrawn: told.isWithdrawn)
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
            told: memory.told.flatMap(ToldContent.init), tried: memory.tried.flatMap(ToldContent.init),
            attempts: Int64(memory.attempts), failingSince: memory.failingSince.map(WallTime.init(microseconds:)),
            error: memory.error)
    }
}
