import FreshetModel
import FreshetPipelines
import Logging
import Synchronization

/// Passes the events of a pipeline's engine to the pipeline's logger, in order, and reports commits and withdrawals.
final class PipelineEventSink: Sendable {
    private let logger: Mutex<PipelineLogger>
    private let name: String
    private let recorder: SignalRecorder
    private let committed: @Sendable (CurrentGeneration, _ causes: String?) -> Void
    private let withdrawal: WithdrawalHandler
    private let runEnded: @Sendable () -> Void
    private let statusChanged: @Sendable () -> Void

    /// Called when a copy was withdrawn or is published again, with the causes in one line.
    typealias WithdrawalHandler = @Sendable (CurrentGeneration, _ causes: String?) -> Void

    /// - Parameters:
    ///   - committed: called for each new generation, with the causes of its run in one line.
    ///   - withdrawal: called when the copy was withdrawn, and when the same copy is published again.
    init(
        _ logger: PipelineLogger, _ recorder: SignalRecorder,
        committed: @escaping @Sendable (CurrentGeneration, _ causes: String?) -> Void,
        withdrawal: @escaping WithdrawalHandler = { _, _ in },
        runEnded: @escaping @Sendable () -> Void = {},
        statusChanged: @escaping @Sendable () -> Void
    ) {
        self.withdrawal = withdrawal
        self.runEnded = runEnded
        name = logger.name
        self.recorder = recorder
        self.logger = Mutex(logger)
        self.committed = committed
        self.statusChanged = statusChanged
    }

    func report(_ report: PipelineReport) {
        let event = report.event
        // A pipeline's timer and parameters belong to its engine and have no other source, so they are recorded here.
        if case .received(let cause) = event, [SignalName.timer, SignalName.parameter].contains(cause.signal) {
            recorder.recordOccurrence(cause.signal, cause.detail, pipeline: name, count: cause.count)
        }
        let isWithdrawn = report.copy?.withdrawnSince != nil
        let generation: CurrentGeneration? =
            switch event {
            case .withdrawn, .returned: report.copy
            // A damaged generation is not kept, so it is not the copy.
            case .withdrawnDamaged(let lost, _): lost
            default: isWithdrawn ? nil : report.copy
            }
        logger.withLock { $0.log(event, generation: generation, isWithdrawn: isWithdrawn) }
        switch event {
        case .runEnded(let summary, _):
            if let new = report.committed { committed(new, summary.causes.summary) }
            runEnded()
        case .stateChanged, .expired, .expiredNoMore, .contentExpired, .contentExpiredNoMore: statusChanged()
        case .withdrawn, .withdrawnDamaged, .returned:
            reportWithdrawal(event, generation)
            statusChanged()
        default: break
        }
    }

    private func reportWithdrawal(_ event: EngineEvent, _ generation: CurrentGeneration?) {
        guard let generation else { return }
        switch event {
        case .withdrawn where generation.withdrawnSince != nil, .withdrawnDamaged:
            withdrawal(generation, "withdrawn")
        // A new generation is reported by the code that published it.
        case .returned(isSame: true, let causes) where generation.withdrawnSince == nil:
            withdrawal(generation, causes?.summary ?? "returned")
        default: break
        }
    }
}
