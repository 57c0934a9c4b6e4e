import FreshetCache
import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Logging

/// Copies that are too old for readers when the daemon starts.
@DaemonActor
struct OverdueCopies {
    private let store: CacheStore
    private let limiter: LogLimiter

    init(_ store: CacheStore, _ limiter: LogLimiter) {
        self.store = store
        self.limiter = limiter
    }

    /// Withdraws or publishes copies as their age requires. It runs before the daemon is ready, because copies may have
    /// expired while the daemon did not run. All copies are handled concurrently, because all may have expired during
    /// one outage.
    ///
    /// - Parameter remembered: the stored states of the pipelines, which this method updates.
    func settle(_ definitions: [PipelineDefinition], _ remembered: inout [String: PersistentState]) async {
        let now = WallTime.now
        let unsettled = definitions.compactMap {
            definition -> (definition: PipelineDefinition, isDue: Bool)? in
            guard let state = remembered[definition.name], let generation = state.generation else { return nil }
            let isDue = definition.isWithdrawn(state, at: now)
            return isDue == (generation.withdrawnSince != nil) ? nil : (definition, isDue)
        }
        let results = await withTaskGroup(
            of: (name: String, result: WithdrawalResult).self, returning: [String: WithdrawalResult].self
        ) { group in
            for (definition, isDue) in unsettled {
                group.addTask { [store] in
                    (
                        definition.name,
                        isDue
                            ? await store.withdraw(definition.name, unless: { false }) : await store.putBack(definition)
                    )
                }
            }
            var results: [String: WithdrawalResult] = [:]
            for await one in group { results[one.name] = one.result }
            return results
        }
        for (definition, isDue) in unsettled {
            // A failure has been logged, and the pipeline retries.
            guard let generation = results[definition.name]?.generation else { continue }
            let isDamaged = results[definition.name] == .damaged(generation)
            remembered[definition.name]?.generation = isDamaged ? nil : generation
            limiter.log(
                isDue ? .withdrawn : .returned, text: isDamaged ? PipelineLogger.withdrawnDamaged : nil,
                [.pipeline: .string(definition.name), .generation: .stringConvertible(generation.number)])
        }
        for message in [JournalMessage.withdrawn, .returned] { limiter.finish(message) }
    }
}

extension PipelineDefinition {
    /// Whether the stored copy has to be withdrawn; the rule is that of ``RefreshMachine``.
    func isWithdrawn(_ state: PersistentState, at wallNow: WallTime) -> Bool {
        guard cache.withdraws, let maxAge = cache.maxAge, let generation = state.generation,
            generation.pinnedSince == nil
        else { return false }
        let checked = state.lastCheck ?? generation.committedAt
        return max(checked, generation.writtenAt ?? checked).duration(to: wallNow) >= maxAge
    }
}

extension WithdrawalResult {
    /// The generation that was withdrawn or published again.
    fileprivate var generation: CurrentGeneration? {
        switch self {
        case .done(let generation), .damaged(let generation): generation
        case .nothing, .left, .failed: nil
        }
    }
}

extension PersistentState {
    /// The current generation, if it is published.
    var published: CurrentGeneration? { generation.flatMap { $0.withdrawnSince == nil ? $0 : nil } }
    /// The current generation, if it is withdrawn.
    var withdrawn: CurrentGeneration? { generation.flatMap { $0.withdrawnSince == nil ? nil : $0 } }
}

extension WithdrawnCopy {
    init?(_ generation: CurrentGeneration) {
        guard let since = generation.withdrawnSince else { return nil }
        self.init(
            number: Int64(clamping: generation.number), size: Int64(clamping: generation.size),
            digest: generation.digest.description, committedAt: generation.committedAt.microseconds,
            since: since.microseconds)
    }
}
