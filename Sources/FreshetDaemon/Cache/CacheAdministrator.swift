import FreshetCache
import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import FreshetVarlink
import Glibc
import Logging

/// Generations of pipelines that the operator lists and selects.
extension Supervisor {
    func history(
        of name: String, limit: Int?
    ) async throws(ControlError) -> ControlMessage.PastGenerations {
        let store = try cacheStore()
        let generations: [FreshetCache.PastGeneration]
        do throws(CacheError) {
            generations = try await store.history(name, limit: limit)
        } catch {
            throw ControlError(error, of: name)
        }
        let (current, withdrawn) = (published(name)?.number, withdrawn(name)?.number)
        return ControlMessage.PastGenerations(
            generations: generations.map { FreshetControl.PastGeneration($0, current: current, withdrawn: withdrawn) },
            key: pipelines[name]?.definition.cache.key)
    }

    func content(
        of name: String, generation: Int64, for peer: VarlinkPeer
    ) async throws(ControlError) -> any ControlContent {
        let store = try cacheStore()
        do throws(CacheError) {
            if let content = try await store.open(generation, of: name, for: FileReader(peer)) {
                return GenerationContent(name: name, stored: content, store: store)
            }
        } catch {
            throw ControlError(error, of: name)
        }
        throw .notReadable(name: name, number: generation)
    }

    func rollBack(
        _ name: String, to number: Int64?, caller: String
    ) async throws(ControlError) -> ControlMessage.RolledBack {
        let store = try cacheStore()
        let definition = try hosted(name).definition
        return try await choose(name, .rollback, caller: caller) { () async throws(CacheStore.RollbackError) in
            try await store.rollBack(definition, to: number)
        }
    }

    /// The ways in which the operator can replace the copy.
    enum Choice: String {
        case rollback, accept

        func detail(_ generation: CurrentGeneration) -> String {
            switch self {
            case .rollback: "rolled back to generation \(generation.number)"
            case .accept: "published rejected content as generation \(generation.number)"
            }
        }

        var message: JournalMessage {
            switch self {
            case .rollback: .rolledBack
            case .accept: .accepted
            }
        }
    }

    /// Publishes the content that the operator chose. If a later step fails, the change is logged and published
    /// nevertheless.
    func choose(
        _ name: String, _ choice: Choice, caller: String,
        _ body: () async throws(CacheStore.RollbackError) -> RollbackOutcome
    ) async throws(ControlError) -> ControlMessage.RolledBack {
        let outcome: RollbackOutcome
        do throws(CacheStore.RollbackError) {
            outcome = try await body()
        } catch {
            throw ControlError(error, of: name)
        }
        let generation = outcome.generation
        if choice == .accept { pipelines[name]?.runner.accepted(generation) }
        if outcome.isDone { log(choice, name, generation, replaced: outcome.replaced, caller: caller) }
        if let failure = outcome.failure { throw ControlError(failure, of: name) }
        return ControlMessage.RolledBack(generation: GenerationStatus(generation), replaced: outcome.replaced)
    }

    private func log(
        _ choice: Choice, _ name: String, _ generation: CurrentGeneration, replaced: Int64?, caller: String
    ) {
        let detail = choice.detail(generation)
        changed(name, generation, detail: detail)
        log.log(
            choice.message,
            [
                .pipeline: .string(name), .generation: .stringConvertible(generation.number),
                .replaced: .string(replaced.map(String.init) ?? "none"), .caller: .string(caller),
            ])
        // Pipelines that run after this one have to see the other copy.
        commitSignals.fire(name, "\(name) \(choice == .rollback ? "was " : "")\(detail)")
        parts?.hooks.generationChanged(name, generation, causes: choice.rawValue)
    }

    func pin(_ name: String, caller: String) async throws(ControlError) -> ControlMessage.Pinned {
        let store = try cacheStore()
        do throws(CacheError) {
            let (generation, wasPinned) = try await store.pin(name)
            if !wasPinned { log(.pinned, name, generation, caller: caller) }
            return ControlMessage.Pinned(generation: GenerationStatus(generation), changed: !wasPinned)
        } catch {
            if error == .nothingPublished, let copy = withdrawn(name).flatMap(WithdrawnCopy.init) {
                throw .withdrawn(name: name, number: copy.number, since: copy.since)
            }
            throw ControlError(error, of: name)
        }
    }

    func unpin(_ name: String, caller: String) async throws(ControlError) -> ControlMessage.Pinned {
        let store = try cacheStore()
        do throws(CacheError) {
            let (generation, wasPinned) = try await store.unpin(name)
            if wasPinned {
                // Without a current generation, only the end of the pin is logged.
                pipelines[name]?.runner.releases()
                invalid[name]?.remembered.generation?.release()
                log(.unpinned, name, generation, caller: caller)
            }
            return ControlMessage.Pinned(generation: generation.map(GenerationStatus.init), changed: wasPinned)
        } catch {
            throw ControlError(error, of: name)
        }
    }

    func cacheStore() throws(ControlError) -> CacheStore {
        guard let store = parts?.store else { throw .busy("the daemon is starting or stopping") }
        return store
    }

    /// The current generation of a pipeline, as far as the daemon knows it without reading the disk.
    func published(_ name: String) -> CurrentGeneration? {
        pipelines[name]?.runner.status.generation ?? invalid[name]?.remembered.published
    }

    private func log(_ message: JournalMessage, _ name: String, _ generation: CurrentGeneration?, caller: String) {
        let number = generation.map { "\($0.number)" } ?? "none"
        changed(name, generation, detail: "\(message.text)".replacing("{generation}", with: number))
        log.log(message, [.pipeline: .string(name), .generation: .string(number), .caller: .string(caller)])
    }

    /// Stores and publishes a change of the copy by the operator.
    func changed(_ name: String, _ generation: CurrentGeneration?, detail: String) {
        if let generation {
            pipelines[name]?.runner.publishes(generation)
            invalid[name]?.remembered.generation = generation
        }
        let state = pipelines[name].map { PipelineState($0.runner.status.activity) } ?? .failed
        events.publish(.state(state, of: name, detail: detail, at: WallClock.now))
        status.mayHaveChanged()
    }
}

/// A generation that a client reads over the control socket.
struct GenerationContent: ControlContent {
    let name: String
    let stored: StoredGeneration
    let store: CacheStore

    func next(_ limit: Int) async throws(ControlError) -> [UInt8] {
        do throws(CacheError) {
            return try await store.read(stored, limit)
        } catch {
            throw ControlError(error, of: name)
        }
    }
}

extension RollbackOutcome {
    /// Whether readers see another generation than before.
    fileprivate var isDone: Bool { replaced != nil || generation.revision > 0 }
}

extension FreshetCache.FileReader {
    init(_ peer: VarlinkPeer) {
        self.init(user: peer.user, groups: Set(peer.supplementaryGroups).union([peer.group]))
    }
}

extension ControlError {
    init(_ error: CacheError, of name: String) {
        switch error {
        case .pinned(let number), .pinnedGone(let number): self = .pinned(name: name, number: number)
        case .notKept(let number, let kept): self = .noSuchGeneration(name: name, number: number, kept: kept)
        case .damaged(let number): self = .damagedGeneration(name: name, number: number)
        case .noCandidate: self = .noCandidate(name: name)
        case .otherCandidate(let digest): self = .otherCandidate(name: name, digest: digest.description)
        case .nothingPublished: self = .noGeneration(name: name)
        default: self = .failed(name: name, reason: error.description)
        }
    }

    init(_ error: CacheStore.RollbackError, of name: String) {
        switch error {
        case .cache(let error): self.init(error, of: name)
        case .definition(let failure): self = .failed(name: name, reason: failure.message)
        }
    }
}

extension FreshetControl.PastGeneration {
    init(_ generation: FreshetCache.PastGeneration, current: UInt64?, withdrawn: UInt64?) {
        self.init(
            number: generation.number, committedAt: generation.committedAt.microseconds, size: generation.size,
            digest: generation.digest.description, causes: generation.causes,
            durationUSec: generation.duration?.microseconds, truncated: generation.truncated ? true : nil,
            kept: generation.isKept, current: current == UInt64(clamping: generation.number),
            withdrawn: withdrawn == UInt64(clamping: generation.number) ? true : nil)
    }
}
