import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemd
import Logging

/// Copies that readers do not find, since they are too old for them.
extension Supervisor {
    /// Before the daemon is ready: readers find of each pipeline what they are to find by now, however long nobody has
    /// looked. All at once: while the way to their origins was gone, they may all have expired.
    ///
    /// - Parameter remembered: what is remembered of the pipelines, then and now.
    func settleWithdrawals(_ remembered: inout [String: PersistentState]) async {
        guard let store = parts?.store else { return }
        let now = WallClock.now
        let unsettled = configuration.pipelines.compactMap {
            definition -> (definition: PipelineDefinition, isDue: Bool)? in
            guard let state = remembered[definition.name], let generation = state.generation else { return nil }
            let isDue = definition.isWithdrawn(state, at: now)
            return isDue == (generation.withdrawnSince != nil) ? nil : (definition, isDue)
        }
        let results = await withTaskGroup(
            of: (name: String, result: WithdrawalResult).self, returning: [String: WithdrawalResult].self
        ) { group in
            for (definition, isDue) in unsettled {
                group.addTask {
                    (
                        definition.name,
                        isDue
                            ? await store.withdraw(definition.name, unless: { false }) : await store.putBack(definition)
                    )
                }
            }
            return await group.reduce(into: [:]) { $0[$1.name] = $1.result }
        }
        for (definition, isDue) in unsettled {
            // If it has failed that was said, and the pipeline tries it again.
            guard let generation = results[definition.name]?.generation else { continue }
            let isDamaged = results[definition.name] == .damaged(generation)
            remembered[definition.name]?.generation = isDamaged ? nil : generation
            news.say(
                isDue ? .withdrawn : .returned, text: isDamaged ? PipelineLogger.withdrawnDamaged : nil,
                [.pipeline: .string(definition.name), .generation: .stringConvertible(generation.number)])
        }
        for message in [JournalMessage.withdrawn, .returned] { news.finish(message) }
    }

    /// What of a pipeline is withdrawn, as far as it is known without a look at the disk.
    func withdrawn(_ name: String) -> CurrentGeneration? {
        pipelines[name]?.runner.status.withdrawn ?? faulty[name]?.remembered.withdrawn
    }

    /// Tells those whose business it is that readers find a copy no more, or the same one again.
    func makeWithdrawalNews(_ name: String, _ hooks: HookScheduler) -> PipelineEventSink.WithdrawalHandler {
        { [commits = commitNews] generation, causes in
            hooks.offer(name, generation, causes: causes)
            // Who runs after it may have found nothing in between.
            if generation.withdrawnSince == nil {
                commits.raise(name, "\(name) has its generation \(generation.number) again")
            }
        }
    }
}

extension PipelineDefinition {
    /// Whether readers are to find nothing of what is remembered of it: see ``RefreshMachine``.
    ///
    /// - Parameter wallNow: microseconds since 1970.
    func isWithdrawn(_ state: PersistentState, at wallNow: Int64) -> Bool {
        guard cache.withdraws, let maxAge = cache.maxAge, let generation = state.generation,
            generation.pinnedSince == nil
        else { return false }
        let checked = state.lastCheck ?? generation.committedAt
        return Duration.microseconds(wallNow - max(checked, generation.writtenAt ?? checked)) >= maxAge
    }
}

extension WithdrawalResult {
    /// What it was done to.
    fileprivate var generation: CurrentGeneration? {
        switch self {
        case .done(let generation), .damaged(let generation): generation
        case .nothing, .left, .failed: nil
        }
    }
}

extension PersistentState {
    /// What readers see.
    var offered: CurrentGeneration? { generation.flatMap { $0.withdrawnSince == nil ? $0 : nil } }
    /// What they would see if it were not too old.
    var withdrawn: CurrentGeneration? { generation.flatMap { $0.withdrawnSince == nil ? nil : $0 } }
}

extension WithdrawnCopy {
    init?(_ generation: CurrentGeneration) {
        guard let since = generation.withdrawnSince else { return nil }
        self.init(
            number: Int64(clamping: generation.number), size: Int64(clamping: generation.size),
            digest: generation.digest, committedAt: generation.committedAt, since: since)
    }
}
