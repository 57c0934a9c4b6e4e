import FreshetModel
import FreshetPipelines
import Logging
import Synchronization

/// Passes the events of a pipeline's engine to the pipeline's logger, in order, and reports commits and withdrawals.
final class PipelineEventSink: Sendable {
    private let logger: Mutex<PipelineLogger>
    private let name: String
    private let handlers: Handlers

    /// What the sinks of all pipelines share.
    final class Handlers: Sendable {
        /// Called with the name of a pipeline, a generation, and the causes in one line.
        typealias GenerationHandler = @Sendable (_ pipeline: String, CurrentGeneration, _ causes: String?) -> Void

        fileprivate let recorder: SignalRecorder
        fileprivate let committed: GenerationHandler
        fileprivate let withdrawal: GenerationHandler
        fileprivate let runEnded: @Sendable () -> Void
        fileprivate let statusChanged: @Sendable () -> Void

        /// - Parameters:
        ///   - committed: called for each new generation, with the causes of its run.
        ///   - withdrawal: called when a copy was withdrawn, and when the same copy is published again.
        init(
            _ recorder: SignalRecorder, committed: @escaping GenerationHandler, withdrawal: @escaping GenerationHandler,
            runEnded: @escaping @Sendable () -> Void, statusChanged: @escaping @Sendable () -> Void
        ) {
            self.recorder = recorder
            self.committed = committed
            self.withdrawal = withdrawal
            self.runEnded = runEnded
            self.statusChanged = statusChanged
        }
    }

    init(_ logger: PipelineLogger, _ handlers: Handlers) {
        name = logger.name
        self.logger = Mutex(logger)
        self.handlers = handlers
    }

    func report(_ report: PipelineReport) {
        guard let reports = handlers.recorder.reports else { return make(report) }
        switch report.event {
        // The beginning of a run: it is reported once the run's request is made.
        case .received, .waitingEnded, .runStarted, .stateChanged(.loading): reports.add { [self] in make(report) }
        default:
            reports.flush()
            make(report)
        }
    }

    private func make(_ report: PipelineReport) {
        let event = report.event
        // A pipeline's timer and parameters belong to its engine and have no other source, so they are recorded here.
        if case .received(let cause) = event, [SignalName.timer, SignalName.parameter].contains(cause.signal) {
            handlers.recorder.recordOccurrence(cause.signal, cause.detail, pipeline: name, count: cause.count)
        }
        let isWithdrawn = report.copy?.withdrawnSince != nil
        /// Most events need no generation.
        var generation: CurrentGeneration? {
            switch event {
            case .withdrawn, .returned: report.copy
            // A damaged generation is not kept, so it is not the copy.
            case .withdrawnDamaged(let lost, _): lost
            default: isWithdrawn ? nil : report.copy
            }
        }
        logger.withLock { $0.log(event, generation: generation, isWithdrawn: isWithdrawn, usage: report.usage) }
        switch event {
        case .runEnded(let summary, _):
            if let new = report.committed { handlers.committed(name, new, summary.causes.summary) }
            handlers.runEnded()
        case .stateChanged, .expired, .expiredNoMore, .contentExpired, .contentExpiredNoMore:
            handlers.statusChanged()
        case .withdrawn, .withdrawnDamaged, .returned:
            reportWithdrawal(event, generation)
            handlers.statusChanged()
        default: break
        }
    }

    private func reportWithdrawal(_ event: EngineEvent, _ generation: CurrentGeneration?) {
        guard let generation else { return }
        switch event {
        case .withdrawn where generation.withdrawnSince != nil, .withdrawnDamaged:
            handlers.withdrawal(name, generation, "withdrawn")
        // A new generation is reported by the code that published it.
        case .returned(isSame: true, let causes) where generation.withdrawnSince == nil:
            handlers.withdrawal(name, generation, causes?.summary ?? "returned")
        default: break
        }
    }
}
