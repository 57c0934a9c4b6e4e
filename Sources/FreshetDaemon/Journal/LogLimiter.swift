import FreshetPipelines
import Logging
import Synchronization

/// Limits the messages of all pipelines with a ``BurstSummary``, and logs the summaries when they are due.
///
/// Its timer is armed only while a burst exceeds the limit. Safe to call from any thread.
final class LogLimiter: Sendable {
    private struct State {
        var bursts = BurstSummary()
        /// Made for the first large burst.
        var timer: (any EngineTimer)?
        /// The timer is armed. A burst that continues ends later; when the timer expires, it is armed again.
        var isArmed = false
    }

    private let state = Mutex(State())
    private let log: Logger
    private let clock: any EngineClock

    init(log: Logger, clock: any EngineClock) {
        self.log = log
        self.clock = clock
    }

    /// Counts a run that has ended; returns whether the run is logged individually.
    func ended(_ pipeline: String, _ summary: RunSummary, _ run: BurstSummary.EndedRun) -> Bool {
        count { bursts in
            bursts.ended(pipeline, by: summary.causes.first?.signal ?? SignalName.operation, run, at: summary.ended)
        }
    }

    /// Logs a message that each pipeline may cause, or counts it and logs it at `debug`.
    ///
    /// - Parameters:
    ///   - text: a constant text that replaces the text of the message.
    ///   - level: a level that replaces the level of the message.
    func log(
        _ message: JournalMessage, text: Logger.Message? = nil, level: Logger.Level? = nil,
        _ fields: [JournalField: Logger.MetadataValue]
    ) {
        log.log(message, text: text, level: logs(message) ? level : .debug, fields)
    }

    /// Counts a message that each pipeline or each run may cause; returns whether the caller has to log it at its own
    /// level or, if false, at `debug`.
    ///
    /// - Parameter part: the part of the messages of this kind that is counted separately; nil: all others.
    func logs(_ message: JournalMessage, _ part: BurstSummary.Part? = nil) -> Bool {
        let now = clock.now
        return count { $0.logged(message, part, at: now) }
    }

    /// Logs the summary of a kind of message, because no further message of this kind follows.
    func finish(_ message: JournalMessage) {
        let now = clock.now
        if let summary = state.withLock({ $0.bursts.finish(message, at: now) }) { log(summary) }
    }

    /// Logs all summaries, because no further message follows.
    func finish() {
        for summary in state.withLock({ $0.bursts.finish() }) { log(summary) }
    }

    /// Logs the summaries that are due.
    private func logSummaries() {
        let now = clock.now
        let summaries = state.withLock { state in
            let summaries = state.bursts.elapsed(at: now)
            state.isArmed = false
            arm(&state)
            return summaries
        }
        for summary in summaries { log(summary) }
    }

    private func count(_ event: (inout BurstSummary) -> (logs: Bool, summary: BurstSummary.Summary?)) -> Bool {
        let (logs, summary) = state.withLock { state in
            defer { arm(&state) }
            return event(&state.bursts)
        }
        if let summary { log(summary) }
        return logs
    }

    private func arm(_ state: inout State) {
        guard !state.isArmed, let due = state.bursts.due else { return }
        let timer = state.timer ?? clock.makeTimer { [weak self] in self?.logSummaries() }
        state.timer = timer
        state.isArmed = true
        timer.arm(at: due)
    }

    private func log(_ summary: BurstSummary.Summary) {
        switch summary {
        case .more(let message, let count):
            log.log(
                .more, level: max(message.level, .notice),
                [.count: .stringConvertible(count), .message: .string("\(message.text)")])
        case .runs(let signal, let runs):
            // If no message was suppressed, the summary is only for debugging.
            let level: Logger.Level =
                runs.suppressedFailures > 0 ? .warning : runs.suppressed > 0 ? .info : .debug
            log.log(
                .summary, level: level,
                [
                    .signal: .string(signal), .pipelines: .stringConvertible(runs.pipelines),
                    .runs: .stringConvertible(runs.runs), .changed: .stringConvertible(runs.changed),
                    .unchanged: .stringConvertible(runs.unchanged), .failed: .stringConvertible(runs.failed),
                    .recovered: .stringConvertible(runs.recovered),
                ])
        }
    }
}
