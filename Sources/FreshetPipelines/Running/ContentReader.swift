/// Gives answers to programs: a long one is kept aside until there is memory for it and for the programs.
struct ContentReader: Sendable {
    let world: EngineDependencies
    /// Nil: no answer is kept aside.
    var definition: PipelineDefinition?

    /// Where a long answer goes that a program reads; nil: it is wanted in memory.
    var keeper: (any BodyStoring)? {
        guard world.memory != nil, let definition else { return nil }
        return world.store.keeper(of: definition)
    }

    /// Does something with the bytes of an answer, and with more memory once more, if there was too little. The answer has
    /// ended then.
    ///
    /// - Parameter work: is given the world in which programs have the memory that is theirs.
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
        // To the end of all that is done with the bytes.
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
