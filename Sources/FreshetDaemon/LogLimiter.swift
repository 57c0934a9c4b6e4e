import FreshetPipelines
import Logging
import Synchronization

/// Keeps the waves of news of all pipelines, and tells their summaries when they are due.
///
/// Its timer is armed only while a wave is too large to be told one by one. Safe to call from any thread.
final class LogLimiter: Sendable {
    private struct State {
        var waves = BurstSummary()
        /// Made with the first large wave.
        var timer: (any EngineTimer)?
        /// The timer is on its way. A wave that goes on moves its end: it is looked up when the timer comes.
        var isArmed = false
    }

    private let state = Mutex(State())
    private let log: Logger
    private let clock: any EngineClock

    init(log: Logger, clock: any EngineClock) {
        self.log = log
        self.clock = clock
    }

    /// A run has ended; returns whether it is to be told by itself.
    func ended(_ pipeline: String, _ summary: RunSummary, _ news: BurstSummary.News) -> Bool {
        note { waves in
            waves.ended(pipeline, by: summary.causes.first?.signal ?? SignalName.operation, news, at: summary.ended)
        }
    }

    /// Says something of which there may be one for each pipeline, or counts it.
    ///
    /// - Parameters:
    ///   - text: other words of the same meaning; constant ones.
    ///   - level: another level than the message's own.
    func say(
        _ message: JournalMessage, text: Logger.Message? = nil, level: Logger.Level? = nil,
        _ fields: [JournalField: Logger.MetadataValue]
    ) {
        let now = clock.now
        let tell = note { $0.said(message, at: now) }
        log.say(message, text: text, level: tell ? level : .debug, fields)
    }

    /// All of a kind was said: what was only counted is summed up.
    func finish(_ message: JournalMessage) {
        if let summary = state.withLock({ $0.waves.finish(message) }) { say(summary) }
    }

    /// Nothing more comes: whatever was only counted is summed up.
    func finish() {
        for summary in state.withLock({ $0.waves.finish() }) { say(summary) }
    }

    /// Tells what is due.
    private func tell() {
        let now = clock.now
        let summaries = state.withLock { state in
            let summaries = state.waves.elapsed(at: now)
            state.isArmed = false
            arm(&state)
            return summaries
        }
        for summary in summaries { say(summary) }
    }

    private func note(_ event: (inout BurstSummary) -> (tell: Bool, summary: BurstSummary.Summary?)) -> Bool {
        let (tell, summary) = state.withLock { state in
            defer { arm(&state) }
            return event(&state.waves)
        }
        if let summary { say(summary) }
        return tell
    }

    private func arm(_ state: inout State) {
        guard !state.isArmed, let due = state.waves.due else { return }
        let timer = state.timer ?? clock.makeTimer { [weak self] in self?.tell() }
        state.timer = timer
        state.isArmed = true
        timer.arm(at: due)
    }

    private func say(_ summary: BurstSummary.Summary) {
        switch summary {
        case .more(let message, let count):
            log.say(
                .more, level: max(message.level, .notice),
                [.count: .stringConvertible(count), .message: .string("\(message.text)")])
        case .runs(let signal, let runs):
            // Where there was nothing to tell one by one, there is nothing to tell of them all.
            let level: Logger.Level =
                runs.failuresPassedOver > 0 ? .warning : runs.passedOver > 0 ? .info : .debug
            log.say(
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
