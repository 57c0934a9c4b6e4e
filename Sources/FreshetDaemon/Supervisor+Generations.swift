import FreshetCache
import FreshetControl
import FreshetPipelines
import FreshetSystemd
import FreshetVarlink
import Glibc
import Logging

/// Generations of pipelines, as the operator sees and chooses them.
extension Supervisor {
    func history(of name: String, limit: Int?) async throws(ControlError) -> [FreshetControl.PastGeneration] {
        let store = try cacheStore()
        let generations: [FreshetCache.PastGeneration]
        do throws(CacheError) {
            generations = try await store.history(name, limit: limit)
        } catch {
            throw ControlError(error, of: name)
        }
        let current = offered(name)?.number
        return generations.map { FreshetControl.PastGeneration($0, current: current) }
    }

    func content(
        of name: String, generation: Int64, for peer: VarlinkPeer
    ) async throws(ControlError) -> any ControlContent {
        let store = try cacheStore()
        do throws(CacheError) {
            let reader = FileReader(user: peer.user, groups: Set(peer.supplementaryGroups).union([peer.group]))
            if let content = try await store.open(generation, of: name, for: reader) {
                return GenerationContent(name: name, stored: content, store: store)
            }
        } catch {
            throw ControlError(error, of: name)
        }
        throw .notReadable(name: name, number: generation)
    }

    func rollBack(
        _ name: String, to number: Int64?, asker: String
    ) async throws(ControlError) -> ControlMessage.RolledBack {
        let store = try cacheStore()
        guard let hosted = pipelines[name] else {
            throw .busy(
                faulty[name] == nil
                    ? "'\(name)' was removed from the configuration"
                    : "'\(name)' does not run: its configuration has faults")
        }
        let outcome: RollbackOutcome
        do throws(CacheStore.RollbackError) {
            outcome = try await store.rollBack(hosted.definition, to: number)
        } catch {
            switch error {
            case .cache(let error): throw ControlError(error, of: name)
            case .definition(let failure): throw .busy(failure.message)
            }
        }
        let generation = OfferedGeneration(outcome.generation)
        if outcome.isDone {
            let detail = "rolled back to generation \(generation.number)"
            changed(name, generation, detail: detail)
            log.say(
                .rolledBack,
                [
                    .pipeline: .string(name), .generation: .stringConvertible(generation.number),
                    .replaced: .string(outcome.replaced.map(String.init) ?? "none"), .asker: .string(asker),
                ])
            // For those who run after it, its copy is another one.
            commitNews.raise(name, "\(name) was \(detail)")
            parts?.hooks.offer(name, generation, causes: "rollback")
        }
        return ControlMessage.RolledBack(
            generation: GenerationStatus(generation), replaced: outcome.replaced)
    }

    func pin(_ name: String, asker: String) async throws(ControlError) -> ControlMessage.Pinned {
        let store = try cacheStore()
        do throws(CacheError) {
            let (pinned, wasPinned) = try await store.pin(name)
            let generation = OfferedGeneration(pinned)
            if !wasPinned { tell(.pinned, name, generation, asker: asker) }
            return ControlMessage.Pinned(generation: GenerationStatus(generation), changed: !wasPinned)
        } catch {
            throw ControlError(error, of: name)
        }
    }

    func unpin(_ name: String, asker: String) async throws(ControlError) -> ControlMessage.Pinned {
        let store = try cacheStore()
        do throws(CacheError) {
            let (offered, wasPinned) = try await store.unpin(name)
            let generation = offered.map(OfferedGeneration.init)
            if wasPinned { tell(.unpinned, name, generation, asker: asker) }
            return ControlMessage.Pinned(generation: generation.map(GenerationStatus.init), changed: wasPinned)
        } catch {
            throw ControlError(error, of: name)
        }
    }

    private func cacheStore() throws(ControlError) -> CacheStore {
        guard let store = parts?.store else { throw .busy("the daemon starts or stops") }
        return store
    }

    /// What is offered of a pipeline, as far as it is known without a look at the disk.
    private func offered(_ name: String) -> OfferedGeneration? {
        pipelines[name]?.runner.status.generation ?? faulty[name]?.remembered.generation
    }

    private func tell(_ message: JournalMessage, _ name: String, _ generation: OfferedGeneration?, asker: String) {
        let number = generation.map { "\($0.number)" } ?? "none"
        changed(name, generation, detail: "\(message.text)".replacing("{generation}", with: number))
        log.say(message, [.pipeline: .string(name), .generation: .string(number), .asker: .string(asker)])
    }

    /// Notes what the operator has made of a copy, and tells those who follow.
    private func changed(_ name: String, _ generation: OfferedGeneration?, detail: String) {
        if let generation {
            pipelines[name]?.runner.offers(generation)
            faulty[name]?.remembered.generation = generation
        }
        let state = pipelines[name].map { PipelineState($0.runner.status.activity) } ?? .failed
        events.publish(.state(state, of: name, detail: detail, at: WallClock.now))
        statusMayHaveChanged()
    }
}

/// A generation that somebody reads over the control socket.
private struct GenerationContent: ControlContent {
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
    /// Readers see another generation than before.
    fileprivate var isDone: Bool { replaced != nil || generation.turn > 0 }
}

extension ControlError {
    init(_ error: CacheError, of name: String) {
        switch error {
        case .pinned(let number), .pinnedGone(let number): self = .pinned(name: name, number: number)
        case .notKept(let number, let kept): self = .noSuchGeneration(name: name, number: number, kept: kept)
        case .damaged(let number): self = .damagedGeneration(name: name, number: number)
        case .nothingOffered: self = .noGeneration(name: name)
        default: self = .busy(error.description)
        }
    }
}

extension FreshetControl.PastGeneration {
    init(_ generation: FreshetCache.PastGeneration, current: UInt64?) {
        self.init(
            number: generation.number, committedAt: generation.committedAt.microseconds, size: generation.size,
            digest: generation.digest.description, causes: generation.causes,
            durationUSec: generation.duration?.microseconds, truncated: generation.truncated ? true : nil,
            kept: generation.isKept, current: current == UInt64(clamping: generation.number))
    }
}
