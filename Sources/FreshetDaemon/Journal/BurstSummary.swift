import FreshetModel

/// Decides which of many similar messages are logged individually, and sums up the others. Otherwise journald would
/// drop messages (journald.conf(5), `RateLimitBurst=`), because one signal may start thousands of pipelines.
///
/// All runs that one signal starts are a burst. In each burst, the first ``limit`` messages and the first ``limit``
/// failures are logged individually. The others are counted and logged as one summary when the burst ends: after
/// ``quiet`` without another event, or after ``atMost``; then the next burst begins. A burst below the limit has no
/// summary.
struct BurstSummary: Hashable, Sendable {
    /// The maximum number of messages of a burst that are logged individually. Failures have the same limit again.
    static let limit = 100
    /// The quiet period that ends a burst.
    static let quiet: Duration = .seconds(5)
    /// The maximum length of a burst. A longer burst is split.
    static let atMost: Duration = .seconds(60)
    /// How many times within ``atMost`` ``finish(_:at:)`` can end a burst of messages. After that, the burst continues,
    /// because a client can cause one reload after the other, each with many errors.
    static let maxFinishes = 10

    /// What the messages of one burst have in common.
    enum Topic: Hashable, Sendable {
        /// The runs that a signal of this name started.
        case signal(String)
        /// One kind of message that each pipeline may cause.
        case message(JournalMessage, Part?)
    }

    /// A part of the messages of one kind that is counted separately.
    enum Part: Hashable, Sendable {
        /// The message with the number of lines of a program that were not logged.
        case linesLeftOut
    }

    /// The outcome of a run, and whether it is worth a log message.
    struct EndedRun: Hashable, Sendable {
        enum Outcome: Hashable, Sendable { case changed, unchanged, failed }

        var outcome: Outcome
        /// The run ended a failure that was logged.
        var isRecovery = false
        /// The run is worth a log message.
        var isNew: Bool
    }

    /// The summary of a burst that exceeded the limit.
    enum Summary: Hashable, Sendable {
        case runs(signal: String, Runs)
        /// This number of messages was suppressed.
        case more(JournalMessage, count: Int)
    }

    /// The runs of a burst.
    struct Runs: Hashable, Sendable {
        var runs = 0
        /// The number of pipelines whose last run changed the copy. The three numbers add up to all pipelines.
        var changed = 0
        var unchanged = 0
        var failed = 0
        /// How many pipelines recovered.
        var recovered = 0
        /// Messages that were not logged individually.
        var suppressed = 0
        /// The failures among the suppressed messages.
        var suppressedFailures = 0

        var pipelines: Int { changed + unchanged + failed }
    }

    private struct Burst: Hashable {
        let began: BootInstant
        var last: BootInstant
        var loggedOthers = 0
        var loggedFailures = 0
        var suppressed = 0
        var suppressedFailures = 0
        var runs = 0
        var recovered = 0
        /// The outcome of each pipeline's runs so far; empty for a burst of messages.
        var outcomes: [String: EndedRun.Outcome] = [:]

        /// When the burst ends if no further event follows.
        var end: BootInstant { min(last + BurstSummary.quiet, began + BurstSummary.atMost) }
        /// The burst gets a summary when it ends.
        var isLarge: Bool { suppressed > 0 || runs > BurstSummary.limit }

        /// Counts a run; returns whether the run is logged individually.
        mutating func ended(_ pipeline: String, _ run: EndedRun, at now: BootInstant) -> Bool {
            last = now
            runs += 1
            if run.isRecovery { recovered += 1 }
            // If a copy changes and the next run finds it unchanged, it has changed in this burst.
            if run.outcome != .unchanged || outcomes[pipeline] != .changed { outcomes[pipeline] = run.outcome }
            return run.isNew && logsIndividually(isFailure: run.outcome == .failed)
        }

        /// Counts a message; returns whether the message is logged individually.
        mutating func logged(at now: BootInstant) -> Bool {
            last = now
            return logsIndividually(isFailure: false)
        }

        /// Counts an event that is worth a log message; returns whether the event gets one.
        mutating func logsIndividually(isFailure: Bool) -> Bool {
            if isFailure, loggedFailures < BurstSummary.limit {
                loggedFailures += 1
                return true
            }
            if !isFailure, loggedOthers < BurstSummary.limit {
                loggedOthers += 1
                return true
            }
            suppressed += 1
            if isFailure { suppressedFailures += 1 }
            return false
        }
    }

    private struct Finishes: Hashable {
        let since: BootInstant
        var count = 0
    }

    private var bursts: [Topic: Burst] = [:]
    /// How many times ``finish(_:at:)`` ended a burst of messages, and since when that is counted.
    private var finishes: [JournalMessage: Finishes] = [:]

    /// When to call ``elapsed(at:)``; nil: there is nothing to sum up. The instant moves while a burst continues. It is
    /// enough to call ``elapsed(at:)`` at the first instant and to read this property again then.
    var due: BootInstant? {
        bursts.values.lazy.filter(\.isLarge).map(\.end).min()
    }

    /// Counts a run that has ended; returns whether the run is logged individually. A run that is not new is only
    /// counted.
    ///
    /// - Parameter signal: the first cause of the run.
    mutating func ended(
        _ pipeline: String, by signal: String, _ run: EndedRun, at now: BootInstant
    ) -> (logs: Bool, summary: Summary?) {
        let topic = Topic.signal(signal)
        let summary = close(topic, at: now)
        // Changed in place: a copy of the burst would copy all outcomes for each run.
        let logs = bursts[topic, default: Burst(began: now, last: now)].ended(pipeline, run, at: now)
        return (logs, summary)
    }

    /// Counts a message of a kind that each pipeline may cause; returns whether the message is logged individually.
    mutating func logged(
        _ message: JournalMessage, _ part: Part? = nil, at now: BootInstant
    ) -> (logs: Bool, summary: Summary?) {
        let topic = Topic.message(message, part)
        let summary = close(topic, at: now)
        let logs = bursts[topic, default: Burst(began: now, last: now)].logged(at: now)
        return (logs, summary)
    }

    /// Returns the summaries of the bursts that have ended.
    mutating func elapsed(at now: BootInstant) -> [Summary] {
        bursts.keys.sorted(by: Self.isBefore).compactMap { close($0, at: now) }
    }

    /// Ends all bursts, because no further event follows; returns their summaries.
    mutating func finish() -> [Summary] {
        defer { bursts = [:] }
        return bursts.sorted { Self.isBefore($0.key, $1.key) }.compactMap { Self.summary(of: $1, $0) }
    }

    /// Ends a burst of messages, because no further message of this kind follows; returns its summary.
    mutating func finish(_ message: JournalMessage, at now: BootInstant) -> Summary? {
        guard bursts[.message(message, nil)] != nil else { return nil }
        var finished = finishes[message] ?? Finishes(since: now)
        if now >= finished.since + Self.atMost { finished = Finishes(since: now) }
        guard finished.count < Self.maxFinishes else { return nil }
        finished.count += 1
        finishes[message] = finished
        return bursts.removeValue(forKey: .message(message, nil)).flatMap {
            Self.summary(of: $0, .message(message, nil))
        }
    }

    /// Removes a burst that has ended; returns its summary.
    private mutating func close(_ topic: Topic, at now: BootInstant) -> Summary? {
        guard let burst = bursts[topic], now >= burst.end else { return nil }
        bursts[topic] = nil
        return Self.summary(of: burst, topic)
    }

    private static func summary(of burst: Burst, _ topic: Topic) -> Summary? {
        guard burst.isLarge else { return nil }
        switch topic {
        case .message(let message, _): return .more(message, count: burst.suppressed)
        case .signal(let signal):
            var runs = Runs(
                runs: burst.runs, recovered: burst.recovered, suppressed: burst.suppressed,
                suppressedFailures: burst.suppressedFailures)
            for outcome in burst.outcomes.values {
                switch outcome {
                case .changed: runs.changed += 1
                case .unchanged: runs.unchanged += 1
                case .failed: runs.failed += 1
                }
            }
            return .runs(signal: signal, runs)
        }
    }

    private static func isBefore(_ one: Topic, _ other: Topic) -> Bool {
        switch (one, other) {
        case (.signal(let one), .signal(let other)): one < other
        case (.message(let one, let part), .message(let other, _)):
            one == other ? part == nil : one.rawValue < other.rawValue
        case (.signal, .message): true
        case (.message, .signal): false
        }
    }
}
