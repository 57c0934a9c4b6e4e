import FreshetCache
import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import FreshetVarlink
import Logging

/// Copies of pipelines that the operator lists, selects and examines, and the upkeep of the cache. It passes each change
/// of a copy to the pipeline, to hooks, to pipelines that run after it, and to clients.
@DaemonActor
final class CacheAdministrator {
    let context: DaemonContext
    let cache: LocalCache
    let store: CacheStore
    let operations: CacheOperations
    let host: PipelineHost
    let reader: ConfigurationReader
    let commits: CommitSignals
    let hooks: HookScheduler
    private let status: StatusReporter

    init(
        _ context: DaemonContext, _ cache: LocalCache, _ store: CacheStore, _ host: PipelineHost,
        _ reader: ConfigurationReader, _ commits: CommitSignals, _ status: StatusReporter
    ) {
        self.context = context
        self.cache = cache
        self.store = store
        operations = CacheOperations(store)
        self.host = host
        self.reader = reader
        self.commits = commits
        hooks = host.hooks.scheduler
        self.status = status
    }

    // MARK: Copies

    /// Stores and publishes a change of the copy by the operator.
    func changed(_ name: String, _ generation: CurrentGeneration?, detail: String) {
        if let generation {
            host.running(name)?.runner.publishes(generation)
            host.changeInvalid(name) { $0.generation = generation }
        }
        let state = host.running(name).map { PipelineState($0.runner.status.activity) } ?? .failed
        context.events.publish(.state(state, of: name, detail: detail, at: WallClock.now))
        status.mayHaveChanged()
    }

    /// Handles a repair that left a pipeline without any intact content: readers find no file until the next fetch.
    ///
    /// - Parameter revision: when that was: a run may have committed a copy since then.
    func lost(_ name: String, revision: UInt64) {
        host.changeInvalid(name) { $0.generation = nil }
        if let runner = host.running(name)?.runner, !runner.restorer.losesCopy(revision: revision) { return }
        copyLost(name)
    }

    /// The index now has a generation that readers have seen since a change that failed.
    func followed(_ name: String, _ generation: CurrentGeneration) {
        let known = host.running(name)?.runner.copy ?? host.invalid(name)?.remembered.generation
        // The code that has published a newer generation reports that one.
        if let known, known.number != generation.number, known.revision > generation.revision { return }
        let repair = PipelineRecovery.Repair.followed(Int64(clamping: generation.number)).description
        changed(name, generation, detail: repair)
        context.limiter.log(.cacheRepaired, [.pipeline: .string(name), .repairs: .string(repair)])
        commits.fire(name, "\(name) was repaired")
        hooks.generationChanged(name, generation, causes: "repair")
    }

    /// Logs and publishes the loss of a copy. The pipeline fetches it again as soon as it may run.
    func copyLost(_ name: String) {
        context.limiter.log(.copyLost, [.pipeline: .string(name)])
        changed(name, nil, detail: "no content is intact, so Freshet fetches it again")
    }
}

extension CacheAdministrator: GenerationControl {
    func history(
        of name: String, limit: Int?
    ) async throws(ControlError) -> ControlMessage.PastGenerations {
        let generations: [FreshetCache.PastGeneration]
        do throws(CacheError) {
            generations = try await operations.history(name, limit: limit)
        } catch {
            throw ControlError(error, of: name)
        }
        let (current, withdrawn) = (host.published(name)?.number, host.withdrawn(name)?.number)
        return ControlMessage.PastGenerations(
            generations: generations.map { FreshetControl.PastGeneration($0, current: current, withdrawn: withdrawn) },
            key: host.running(name)?.definition.cache.key)
    }

    func content(
        of name: String, generation: Int64, for peer: VarlinkPeer
    ) async throws(ControlError) -> any ControlContent {
        try await content(of: name, generation) { () async throws(CacheError) in
            try await operations.open(generation, of: name, for: FileReader(peer))
        }
    }

    func candidate(of name: String, for peer: VarlinkPeer) async throws(ControlError) -> any ControlContent {
        try await content(of: name, nil) { () async throws(CacheError) in
            try await operations.openRejected(of: name, for: FileReader(peer))
        }
    }

    /// Opens content for a client.
    ///
    /// - Parameters:
    ///   - number: nil: the candidate.
    ///   - open: returns nil if the reader is not permitted to read the content.
    private func content(
        of name: String, _ number: Int64?, _ open: () async throws(CacheError) -> StoredGeneration?
    ) async throws(ControlError) -> any ControlContent {
        do throws(CacheError) {
            if let stored = try await open() {
                return GenerationContent(name: name, stored: stored, operations: operations)
            }
        } catch {
            throw ControlError(error, of: name)
        }
        throw .notReadable(name: name, number: number)
    }

    func rollBack(
        _ name: String, to number: Int64?, caller: String
    ) async throws(ControlError) -> ControlMessage.RolledBack {
        try await choose(name, .rollback, caller: caller) { (definition) async throws(CacheOperations.RollbackError) in
            try await operations.rollBack(definition, to: number)
        }
    }

    func accept(
        _ name: String, _ digest: String?, caller: String
    ) async throws(ControlError) -> ControlMessage.RolledBack {
        try await choose(name, .accept, caller: caller) { (definition) async throws(CacheOperations.RollbackError) in
            try await operations.accept(definition, digest)
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
        _ body: (PipelineDefinition) async throws(CacheOperations.RollbackError) -> RollbackOutcome
    ) async throws(ControlError) -> ControlMessage.RolledBack {
        let definition = try host.hosted(name).definition
        let outcome: RollbackOutcome
        do throws(CacheOperations.RollbackError) {
            outcome = try await body(definition)
        } catch {
            throw ControlError(error, of: name)
        }
        let generation = outcome.generation
        if choice == .accept { host.running(name)?.runner.accepted(generation) }
        if outcome.isDone { log(choice, name, generation, replaced: outcome.replaced, caller: caller) }
        if let failure = outcome.failure { throw ControlError(failure, of: name) }
        return ControlMessage.RolledBack(generation: GenerationStatus(generation), replaced: outcome.replaced)
    }

    private func log(
        _ choice: Choice, _ name: String, _ generation: CurrentGeneration, replaced: Int64?, caller: String
    ) {
        let detail = choice.detail(generation)
        changed(name, generation, detail: detail)
        context.log.log(
            choice.message,
            [
                .pipeline: .string(name), .generation: .stringConvertible(generation.number),
                .replaced: .string(replaced.map(String.init) ?? "none"), .caller: .string(caller),
            ])
        // Pipelines that run after this one have to see the other copy.
        commits.fire(name, "\(name) \(choice == .rollback ? "was " : "")\(detail)")
        hooks.generationChanged(name, generation, causes: choice.rawValue)
    }

    func pin(_ name: String, caller: String) async throws(ControlError) -> ControlMessage.Pinned {
        do throws(CacheError) {
            let (generation, wasPinned) = try await operations.pin(name)
            if !wasPinned { log(.pinned, name, generation, caller: caller) }
            return ControlMessage.Pinned(generation: GenerationStatus(generation), changed: !wasPinned)
        } catch {
            if error == .nothingPublished, let copy = host.withdrawn(name).flatMap(WithdrawnCopy.init) {
                throw .withdrawn(name: name, number: copy.number, since: copy.since)
            }
            throw ControlError(error, of: name)
        }
    }

    func unpin(_ name: String, caller: String) async throws(ControlError) -> ControlMessage.Pinned {
        do throws(CacheError) {
            let (generation, wasPinned) = try await operations.unpin(name)
            if wasPinned {
                // Without a current generation, only the end of the pin is logged.
                host.running(name)?.runner.releases()
                host.changeInvalid(name) { $0.generation?.release() }
                log(.unpinned, name, generation, caller: caller)
            }
            return ControlMessage.Pinned(generation: generation.map(GenerationStatus.init), changed: wasPinned)
        } catch {
            throw ControlError(error, of: name)
        }
    }

    private func log(_ message: JournalMessage, _ name: String, _ generation: CurrentGeneration?, caller: String) {
        let number = generation.map { "\($0.number)" } ?? "none"
        changed(name, generation, detail: "\(message.text)".replacing("{generation}", with: number))
        context.log.log(message, [.pipeline: .string(name), .generation: .string(number), .caller: .string(caller)])
    }
}

/// A generation that a client reads over the control socket.
struct GenerationContent: ControlContent {
    let name: String
    let stored: StoredGeneration
    let operations: CacheOperations

    func next(_ limit: Int) async throws(ControlError) -> [UInt8] {
        do throws(CacheError) {
            return try await operations.read(stored, limit)
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

extension FreshetControl.PastGeneration {
    init(_ generation: FreshetCache.PastGeneration, current: UInt64?, withdrawn: UInt64?) {
        self.init(
            number: generation.number, committedAt: generation.committedAt.microseconds, size: generation.size,
            digest: generation.digest.description,
            causes: generation.causes.map { text in
                [RunCause](summary: text, at: .now).map { SignalCount($0.signal, count: Int64($0.count)) }
            },
            durationUSec: generation.duration?.microseconds, mirror: Redaction.mirror(generation.mirror),
            truncated: generation.truncated ? true : nil,
            kept: generation.isKept, current: current == UInt64(clamping: generation.number),
            withdrawn: withdrawn == UInt64(clamping: generation.number) ? true : nil)
    }
}
