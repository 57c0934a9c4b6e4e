import FreshetCache
import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines

/// The operator's operations on kept content and on the whole cache. A worker thread executes every call, so that a slow
/// disk delays no event.
struct CacheOperations: Sendable {
    private let cache: LocalCache
    private let workers: WorkerPool
    private let readers: WorkerPool
    /// Reads the whole cache for an examination, which may take long.
    private let examiner = WorkerPool(threads: 1)

    init(_ store: CacheStore) {
        (cache, workers, readers) = (store.cache, store.workers, store.readers)
    }

    // MARK: Generations

    func history(_ pipeline: String, limit: Int?) async throws(CacheError) -> [FreshetCache.PastGeneration] {
        try await workers.run("index") { [cache] () throws(CacheError) in
            try cache.generations.history(pipeline, limit: limit ?? .max)
        }
    }

    /// Opens the content of a generation; nil: the reader is not permitted to read it.
    func open(
        _ number: Int64, of pipeline: String, for reader: FileReader
    ) async throws(CacheError) -> StoredGeneration? {
        try await readers.run("generation") { [cache] () throws(CacheError) in
            try cache.generations.open(number, of: pipeline, for: reader)
        }
    }

    func read(_ generation: StoredGeneration, _ limit: Int) async throws(CacheError) -> [UInt8] {
        try await readers.run("generation") { () throws(CacheError) in try generation.read(limit) }
    }

    /// Why a rollback failed.
    enum RollbackError: Error {
        case cache(CacheError)
        case definition(RunFailure)
    }

    func rollBack(
        _ definition: PipelineDefinition, to number: Int64?
    ) async throws(RollbackError) -> RollbackOutcome {
        try await choose("rollback", definition) { (destination) throws(CacheError) in
            try cache.generations.rollBack(destination, to: number)
        }
    }

    /// Opens the rejected candidate of a pipeline; nil: the reader is not permitted to read it.
    func openRejected(of pipeline: String, for reader: FileReader) async throws(CacheError) -> StoredGeneration? {
        try await readers.run("candidate") { [cache] () throws(CacheError) in
            try cache.rejections.open(of: pipeline, for: reader, at: .now)
        }
    }

    func accept(
        _ definition: PipelineDefinition, _ digest: String?
    ) async throws(RollbackError) -> RollbackOutcome {
        try await choose("accept", definition) { (destination) throws(CacheError) in
            try cache.rejections.accept(destination, digest, at: .now)
        }
    }

    /// Publishes the content that the operator chose.
    private func choose(
        _ what: StaticString, _ definition: PipelineDefinition,
        _ body: @escaping @Sendable (CacheDestination) throws(CacheError) -> RollbackOutcome
    ) async throws(RollbackError) -> RollbackOutcome {
        try await workers.run(what) { () throws(RollbackError) in
            let destination: CacheDestination
            do throws(RunFailure) {
                destination = try CacheDestination(definition)
            } catch {
                throw .definition(error)
            }
            do throws(CacheError) {
                return try body(destination)
            } catch {
                throw .cache(error)
            }
        }
    }

    func pin(_ pipeline: String) async throws(CacheError) -> (generation: CurrentGeneration, wasPinned: Bool) {
        try await workers.run("index") { [cache] () throws(CacheError) in
            try cache.generations.pin(pipeline, at: .now)
        }
    }

    func unpin(_ pipeline: String) async throws(CacheError) -> (generation: CurrentGeneration?, wasPinned: Bool) {
        try await workers.run("index") { [cache] () throws(CacheError) in try cache.generations.unpin(pipeline) }
    }

    // MARK: The whole cache

    func examinable() async throws(CacheError) -> [String] {
        try await examiner.run("examination") { [cache] () throws(CacheError) in try cache.checker.examinable() }
    }

    func examine(
        _ step: ExaminationStep, repairs: Bool, until isEnough: @escaping @Sendable () -> Bool
    ) async throws(CacheError) -> CacheExamination {
        try await examiner.run("examination") { [cache] () throws(CacheError) in
            try cache.checker.examine(step, repairs: repairs, until: isEnough)
        }
    }

    func holdings(besides configured: Set<String>) async throws(CacheError) -> [CacheUsage] {
        try await workers.run("index") { [cache] () throws(CacheError) in try cache.pruner.holdings(besides: configured)
        }
    }

    func prune(_ pipeline: String) async throws(CacheError) -> CacheUsage? {
        try await workers.run("prune") { [cache] () throws(CacheError) in try cache.pruner.prune(pipeline) }
    }
}
