import FreshetModel
import FreshetPipelines
import Logging
import Synchronization

/// Logs messages that others can cause at any rate, such as a user who replaces a file. For each subject, such as a
/// file, it logs the first message. It logs the last of the following messages, with the number of suppressed ones,
/// after 5 s without another one or after a minute (``FlapLimiter``). ``LogLimiter`` bounds the messages of all
/// subjects together.
///
/// Its timer is armed only while a summary is pending. Safe to call from any thread.
final class FlapLog: Sendable {
    typealias Fields = [JournalField: Logger.MetadataValue]

    private struct Subject: Hashable {
        let message: JournalMessage
        let name: ExactText
    }

    private struct Entry {
        var flaps = FlapLimiter()
        /// The fields of the last message.
        var fields: Fields = [:]
    }

    private struct State {
        var entries: [Subject: Entry] = [:]
        var timer: (any EngineTimer)?
        var isArmed = false
    }

    /// The maximum number of subjects, as many as the files that a large configuration watches. For further subjects,
    /// only the limit for all messages of the same kind applies.
    static let maxSubjects = 4_096

    private let state = Mutex(State())
    private let log: Logger
    private let limiter: LogLimiter
    private let clock: any EngineClock

    init(log: Logger, limiter: LogLimiter, clock: any EngineClock) {
        self.log = log
        self.limiter = limiter
        self.clock = clock
    }

    /// Logs a message about a subject, or counts it and logs it at `debug`.
    func log(_ message: JournalMessage, about name: String, _ fields: Fields) {
        let now = clock.now
        let logs = state.withLock { state -> Bool in
            let subject = Subject(message: message, name: ExactText(name))
            if state.entries[subject] == nil, state.entries.count >= Self.maxSubjects {
                state.entries = state.entries.filter { $0.value.flaps.isPending || !$0.value.flaps.isQuiet(at: now) }
                guard state.entries.count < Self.maxSubjects else { return true }
            }
            state.entries[subject, default: Entry()].fields = fields
            guard state.entries[subject]?.flaps.changed(at: now) == .suppress else { return true }
            arm(&state)
            return false
        }
        if logs { limiter.log(message, fields) } else { log.log(message, level: .debug, fields) }
    }

    /// Logs all pending summaries, because no further message follows.
    func finish() {
        let pending = state.withLock { state in
            defer { state.entries = [:] }
            return state.entries.compactMap { subject, entry in
                entry.flaps.suppressed > 0 ? (subject, entry.fields, entry.flaps.suppressed) : nil
            }
        }
        log(pending)
    }

    private func timerExpired() {
        let now = clock.now
        let summaries = state.withLock { state in
            var summaries: [(Subject, Fields, Int)] = []
            for (subject, entry) in state.entries {
                var entry = entry
                guard let summary = entry.flaps.elapsed(at: now) else { continue }
                switch summary {
                case .quiet(let changes):
                    summaries.append((subject, entry.fields, changes))
                    state.entries[subject] = nil
                case .goesOn(let changes):
                    summaries.append((subject, entry.fields, changes))
                    state.entries[subject] = entry
                }
            }
            state.isArmed = false
            arm(&state)
            return summaries
        }
        log(summaries)
    }

    private func arm(_ state: inout State) {
        guard !state.isArmed else { return }
        guard let due = state.entries.values.lazy.filter(\.flaps.isPending).compactMap(\.flaps.due).min() else {
            return
        }
        let timer = state.timer ?? clock.makeTimer { [weak self] in self?.timerExpired() }
        state.timer = timer
        state.isArmed = true
        timer.arm(at: due)
    }

    /// - Parameter summaries: each has the fields of the last message and the number of suppressed messages.
    private func log(_ summaries: [(Subject, Fields, Int)]) {
        for (subject, fields, count) in summaries.sorted(by: { $0.0.name.text < $1.0.name.text }) where count > 0 {
            let repeated: Fields = count > 1 ? [.repeated: .stringConvertible(count - 1)] : [:]
            limiter.log(subject.message, fields.merging(repeated) { $1 })
        }
    }
}

extension FlapLimiter {
    /// The last burst has ended.
    fileprivate func isQuiet(at now: BootInstant) -> Bool { due.map { $0 <= now } ?? true }
}
