import FreshetCache
import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemd
import Logging

/// Copies that readers do not find, since they are too old for them.
extension Supervisor {
    /// Before the daemon is ready: readers find of a pipeline what they are to find by now, however long nobody has looked.
    ///
    /// - Returns: what is remembered of it then.
    func settleWithdrawal(of definition: PipelineDefinition, _ state: RememberedState) async -> RememberedState {
        guard let store = parts?.store, let generation = state.generation else { return state }
        let isDue = definition.isWithdrawn(state, at: WallClock.now)
        guard isDue != (generation.withdrawnSince != nil) else { return state }
        let result =
            isDue ? await store.withdraw(definition.name, unless: { false }) : await store.putBack(definition)
        // If that has failed it was said, and the pipeline tries it again.
        guard case .done(let now) = result else { return state }
        let fields: [JournalField: Logger.MetadataValue] = [
            .pipeline: .string(definition.name), .generation: .stringConvertible(now.number),
        ]
        if isDue { news.say(.withdrawn, fields) } else { news.say(.returned, fields) }
        var state = state
        state.generation = now
        return state
    }

    /// What of a pipeline is withdrawn, as far as it is known without a look at the disk.
    func withdrawn(_ name: String) -> OfferedGeneration? {
        pipelines[name]?.runner.status.withdrawn ?? faulty[name]?.remembered.withdrawn
    }

    /// Tells those whose business it is that readers find a copy no more, or the same one again.
    func makeWithdrawalNews(_ name: String, _ hooks: HookDesk) -> PipelineReporter.WithdrawalNews {
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
    func isWithdrawn(_ state: RememberedState, at wallNow: Int64) -> Bool {
        guard cache.withdraws, let maxAge = cache.maxAge, let generation = state.generation,
            generation.pinnedSince == nil
        else { return false }
        let checked = state.lastCheck ?? generation.committedAt
        return Duration.microseconds(wallNow - max(checked, generation.writtenAt ?? checked)) >= maxAge
    }
}

extension RememberedState {
    /// What readers see.
    var offered: OfferedGeneration? { generation.flatMap { $0.withdrawnSince == nil ? $0 : nil } }
    /// What they would see if it were not too old.
    var withdrawn: OfferedGeneration? { generation.flatMap { $0.withdrawnSince == nil ? nil : $0 } }
}

extension WithdrawnCopy {
    init?(_ generation: OfferedGeneration) {
        guard let since = generation.withdrawnSince else { return nil }
        self.init(
            number: Int64(clamping: generation.number), size: Int64(clamping: generation.size),
            digest: generation.digest, committedAt: generation.committedAt, since: since)
    }
}
