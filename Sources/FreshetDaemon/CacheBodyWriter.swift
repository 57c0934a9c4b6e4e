import FreshetCache
import FreshetEventLoop
import FreshetModel
import FreshetPipelines

extension CacheStore {
    func bodyStore(of definition: PipelineDefinition) -> (any BodyStoring)? {
        CacheBodyStore(cache: cache, workers: workers, definition: definition)
    }
}

/// Stores response bodies on the file system of the cache, so that a commit is a rename.
private struct CacheBodyStore: BodyStoring {
    let cache: LocalCache
    let workers: WorkerPool
    let definition: PipelineDefinition

    func begin(expecting size: UInt64?) async throws(RunFailure) -> any PendingBody {
        try await workers.run("body") { () throws(RunFailure) in
            let destination = try CacheDestination(definition)
            do throws(CacheError) {
                return CacheBodyWriter(try cache.begin(destination, expecting: size), workers)
            } catch {
                throw RunFailure(error)
            }
        }
    }
}

/// A body that is being written to disk as a candidate of the cache. If it is dropped, or if the process is killed, the
/// cache removes it like any other candidate.
final class CacheBodyWriter: PendingBody {
    let generation: PendingGeneration
    private let workers: WorkerPool

    init(_ generation: PendingGeneration, _ workers: WorkerPool) {
        self.generation = generation
        self.workers = workers
    }

    func append(_ bytes: [UInt8]) async throws(RunFailure) {
        try await workers.run("body") { [generation] () throws(RunFailure) in
            do throws(CacheError) {
                try generation.write(bytes)
            } catch {
                throw RunFailure(error)
            }
        }
    }

    func digest() async throws(RunFailure) -> String {
        try await read { (generation) throws(CacheError) in
            guard let digest = try generation.digest() else { throw .finished }
            return digest.description
        }
    }

    func reduce<Result: Sendable>(
        into initial: Result, _ next: @escaping @Sendable (inout Result, UnsafeRawBufferPointer) -> Void
    ) async throws(RunFailure) -> Result {
        try await read { (generation) throws(CacheError) in
            var result = initial
            try generation.read { next(&result, $0) }
            return result
        }
    }

    func isIntact() async throws(RunFailure) -> Bool {
        try await read { (generation) throws(CacheError) in try generation.isIntact() }
    }

    var path: String? { generation.file }

    private func read<Result: Sendable>(
        _ work: @escaping @Sendable (PendingGeneration) throws(CacheError) -> Result
    ) async throws(RunFailure) -> Result {
        try await workers.run("body") { [generation] () throws(RunFailure) in
            do throws(CacheError) {
                return try work(generation)
            } catch {
                throw RunFailure(error)
            }
        }
    }

    func discard() async {
        await workers.run("body") { [generation] in generation.discard() }
    }
}

extension RunFailure {
    /// Makes an error of the cache the failure of a run.
    init(_ error: CacheError) {
        self.init(.local, error.description)
        if case .afterPublication = error { isPublished = true }
    }
}
