/// Passes answers to programs. A long answer stays on disk until there is memory for it and for the programs.
struct ContentReader: Sendable {
    let world: EngineDependencies
    /// Nil: all answers stay in memory.
    var definition: PipelineDefinition?

    /// The store for a long answer that a program reads; nil: the answer must be in memory.
    var bodyStore: (any BodyStoring)? {
        guard world.memory != nil, let definition else { return nil }
        return world.store.bodyStore(of: definition)
    }

    /// Runs work on the bytes of an answer, and again with more memory if the memory did not suffice. Afterwards the
    /// stored answer is discarded.
    ///
    /// - Parameter work: gets the dependencies whose programs use the reserved memory.
    func read<Result>(
        _ body: FetchedBody, _ work: (_ bytes: [UInt8], EngineDependencies) async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        guard case .kept(let kept) = body else { return try await work(body.bytes ?? [], world) }
        do throws(FetchError) {
            let result = try await read(kept, work)
            await body.discard()
            return result
        } catch {
            await body.discard()
            throw error
        }
    }

    private func read<Result>(
        _ kept: StoredBody, _ work: (_ bytes: [UInt8], EngineDependencies) async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        do throws(FetchError) {
            return try await read(kept, .usual, work)
        } catch {
            guard case .failed(let failure) = error, failure.lacksMemory else { throw error }
        }
        return try await read(kept, .all, work)
    }

    private func read<Result>(
        _ kept: StoredBody, _ level: MemoryShare.Level,
        _ work: (_ bytes: [UInt8], EngineDependencies) async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        let memory = try await world.reserve(for: kept.size, level)
        // Released when the work on the bytes has ended.
        defer { memory?.release() }
        let bytes: [UInt8]
        do throws(RunFailure) {
            bytes = try await kept.pending.content(of: kept.size)
        } catch {
            throw .failed(error)
        }
        return try await work(bytes, memory.map(world.using) ?? world)
    }
}
