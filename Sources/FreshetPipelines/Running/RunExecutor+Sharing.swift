import FreshetModel

/// A run of a pipeline whose content is shared with other machines.
extension RunExecutor {
    /// A longer shared content is stored on disk while it is received.
    private static let longestInMemory: UInt64 = 1 << 20

    /// Runs on the content of the fleet, or for all machines on that of the origin.
    func runShared(_ sharing: any ContentSharing) async throws(FetchError) -> Success {
        let request = SharingRequest(definition: definition, parameters: parameters, causes: causes, copy: copyBefore)
        switch try await world.pausing({ () async throws(FetchError) in try await sharing.content(for: request) }) {
        case .origin: return try await runAtOrigin()
        case .originForAll(let ended):
            return try await reporting(to: ended) { () async throws(FetchError) in try await runAtOrigin() }
        case .shared(let content, let ended):
            return try await reporting(to: ended) { () async throws(FetchError) in try await run(on: content) }
        }
    }

    private func reporting(
        to ended: (SharedRunEnd) async -> Void, _ run: () async throws(FetchError) -> Success
    ) async throws(FetchError) -> Success {
        do throws(FetchError) {
            let success = try await run()
            await ended(await sharedEnd(of: success))
            return success
        } catch {
            switch error {
            case .cancelled: await ended(.cancelled)
            case .failed(let failure): await ended(.failed(failure))
            }
            throw error
        }
    }

    private func sharedEnd(of success: Success) async -> SharedRunEnd {
        // A copy that is pinned or rolled back to is not what the origin has.
        guard let generation = success.generation ?? copyBefore, !generation.isBehind else { return .cancelled }
        let binding = binding
        return .succeeded(generation, await world.store.validators(definition.name, binding: binding) ?? Validators())
    }

    /// The content is a candidate like any other: it has to pass this machine's own checks.
    private func run(on content: SharedContent) async throws(FetchError) -> Success {
        if Task.isCancelled { throw .cancelled }
        if content.digest == copyBefore?.digest, let success = try await confirmed(content) { return success }
        let body = try await body(of: content)
        do throws(FetchError) {
            guard isRead else { return try await conclude(body, content.validators) }
            return try await reader.read(body) { (bytes, world) throws(FetchError) in
                var run = self
                run.world = world
                return try await run.conclude(.bytes(bytes), content.validators)
            }
        } catch {
            await body.discard()
            throw error
        }
    }

    /// The copy has the content already; nil: the copy has changed meanwhile.
    private func confirmed(_ content: SharedContent) async throws(FetchError) -> Success? {
        let (store, binding) = (world.store, binding)
        guard await store.isCopy(definition.name, content.digest) else { return nil }
        progress.recordConclusion()
        if let validators = await store.validators(definition.name, binding: binding) {
            let isRecorded = await store.recordUnchanged(
                definition.name, binding: binding, asked: validators,
                validators: content.validators.isEmpty ? nil : content.validators, expires: nil)
            if isRecorded, !definition.cache.withdraws { return Success(changed: false) }
        }
        // Without validators, the commit of the same content is the check.
        let copy: [UInt8]?
        do throws(RunFailure) {
            copy = try await store.copy(of: definition)
        } catch {
            throw .failed(error)
        }
        guard let copy else { return nil }
        return try await conclude(.bytes(copy), content.validators)
    }

    private func body(of content: SharedContent) async throws(FetchError) -> FetchedBody {
        let limit = definition.check.maxBytes
        guard content.size <= limit else {
            throw .failed(
                RunFailure(
                    .content, "the fleet's content has \(content.size) bytes, more than \(limit) (check.max-bytes)"))
        }
        let (store, report) = (bodyStore, progress.track())
        progress.announce(content.size)
        do throws(RunFailure) {
            guard content.size > Self.longestInMemory, let store else {
                var bytes: [UInt8] = []
                bytes.reserveCapacity(Int(clamping: content.size))
                try await content.read { (piece) throws(RunFailure) in
                    bytes += piece
                    report(UInt64(bytes.count))
                }
                return .bytes(bytes)
            }
            let pending = try await store.begin(expecting: content.size)
            var received: UInt64 = 0
            do throws(RunFailure) {
                try await content.read { (piece) throws(RunFailure) in
                    try await pending.append(piece)
                    received += UInt64(piece.count)
                    report(received)
                }
            } catch {
                await pending.discard()
                throw error
            }
            return .kept(StoredBody(pending, size: Int(clamping: content.size)))
        } catch {
            throw Task.isCancelled ? .cancelled : .failed(error)
        }
    }
}
