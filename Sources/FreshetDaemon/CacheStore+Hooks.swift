import FreshetCache
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc

/// The stored state of hooks.
extension CacheStore {
    /// Stores which hooks the pipelines have from now on, and returns the stored states of these hooks; nil: they cannot be
    /// read.
    ///
    /// - Parameter kept: the identifiers of hooks whose states stay, because their pipelines are unknown now.
    func assignHooks(
        _ hooks: [PipelineHooks], keeping kept: Set<String>
    ) async -> [String: [String: StoredHookState]]? {
        await workers.run("index") { [self] in
            do throws(CacheError) {
                return try cache.records.assignHooks(hooks, keeping: kept)
            } catch {
                for pipeline in hooks where !pipeline.hooks.isEmpty { report(pipeline.pipeline, error) }
                return nil
            }
        }
    }

    func remember(_ memory: StoredHookState, of hook: String, of pipeline: String) async {
        await remember([(pipeline, memory)], of: hook)
    }

    /// Stores the states that a hook has for several pipelines, in one transaction.
    func remember(_ memories: [(pipeline: String, state: StoredHookState)], of hook: String) async {
        guard let first = memories.first else { return }
        await workers.run("index") { [self] in
            do throws(CacheError) {
                try cache.records.record(memories, of: hook)
            } catch {
                report(first.pipeline, error)
            }
        }
    }

    /// The content of a generation, for reading; nil: it is not kept any more, or cannot be opened. Blocks.
    func open(_ identity: GenerationIdentity, of pipeline: String) -> StoredGeneration? {
        let myself = FreshetCache.FileReader(user: geteuid(), groups: [getegid()])
        guard let found = try? cache.generations.find(identity, of: pipeline), found.path != nil else { return nil }
        return (try? cache.generations.open(found.generation.number, of: pipeline, for: myself)) ?? nil
    }

    /// The content of a generation; nil: the content is not kept any more, is damaged, or has more bytes than the
    /// limit.
    func content(_ identity: GenerationIdentity, of pipeline: String, limit: Int) async -> [UInt8]? {
        await readers.run("generation") { [self] in
            do throws(CacheError) {
                guard let content = open(identity, of: pipeline) else { return nil }
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
        guard let identity else { return nil }
        return await workers.run("index") { [self] in
            // If the index fails, the hook runs without this information.
            (try? cache.generations.find(identity, of: pipeline)) ?? nil
        }
    }
}
