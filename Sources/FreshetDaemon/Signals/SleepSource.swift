import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging

/// Sleep and wake of the machine, and steps of its wall clock.
@DaemonActor
final class SleepSource: FollowingSource {
    nonisolated let name = SignalName.resume
    private let monitor: SleepMonitor
    private let engine: PipelineEngine
    private let recorder: SignalRecorder
    private let context: DaemonContext
    private let status: StatusReporter
    private var logFilter = SleepLogFilter()

    init(
        _ monitor: SleepMonitor, _ engine: PipelineEngine, _ recorder: SignalRecorder, _ context: DaemonContext,
        _ status: StatusReporter
    ) {
        self.monitor = monitor
        self.engine = engine
        self.recorder = recorder
        self.context = context
        self.status = status
    }

    var signal: Signal? { monitor.resumed }
    var fact: String { monitor.fact.text(at: .now) }
    var unavailable: String? { monitor.fact.missing }
    var ignored: UInt64? { monitor.minorChanges }
    func fire(_ detail: String) { monitor.fire(detail) }

    /// Passes sleep, wake and clock steps to the pipelines, and logs and publishes them.
    nonisolated func follow() async {
        await withDiscardingTaskGroup { group in
            group.addTask { [self] in
                for await fact in monitor.facts {
                    engine.goesToSleep(fact.isGoingToSleep)
                    recorder.fact(name, fact.description)
                    await logMissing(fact)
                }
            }
            group.addTask { [self] in
                for await causes in monitor.resumed.causes { await resumed(causes, monitor.fact) }
            }
            group.addTask { [self] in
                for await causes in monitor.clockStepped.causes {
                    engine.clockStepped()
                    await clockStepped(causes.last?.last.detail)
                }
            }
        }
    }

    private func logMissing(_ fact: SleepFact) {
        switch logFilter.changed(fact.logind) {
        case .missing(let reason):
            context.flapLog.log(.logindMissing, about: "logind", [.error: .string(reason)])
        case .found: context.flapLog.log(.logindFound, about: "logind", [:])
        case nil: break
        }
    }

    private func resumed(_ causes: [Cause], _ fact: SleepFact) {
        guard let cause = causes.first, logFilter.woke(fact) else { return }
        var fields: [JournalField: Logger.MetadataValue] = [:]
        if let slept = fact.lastSleep { fields[.slept] = .string("\(slept.rounded)") }
        if let detail = cause.last.detail { fields[.detail] = .string(detail) }
        context.limiter.log(.resumed, fields)
    }

    private func clockStepped(_ detail: String?) {
        var fields: [JournalField: Logger.MetadataValue] = [:]
        if let detail { fields[.detail] = .string(detail) }
        context.limiter.log(.clockStepped, fields)
        status.mayHaveChanged()
    }
}
