import FreshetCache
import FreshetEventLoop
import FreshetModel
import FreshetPipelines

/// The operator's operations on generations.
extension CacheStore {
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
}
