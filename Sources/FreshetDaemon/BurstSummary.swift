/// Which of many equal news are told one by one, so that the journal, which drops what comes too fast
/// (journald.conf(5), `RateLimitBurst=`), drops nothing: one signal may wake thousands of pipelines.
///
/// What comes of one signal is a wave. Of a wave the first ``limit`` news are told one by one, and as many bad ones;
/// what is beyond is counted, and told as one summary when the wave is over: when nothing more came of it for
/// ``quiet``, or after ``atMost``, and then the next wave begins. Below the limit all is told and there is no summary.
struct BurstSummary: Hashable, Sendable {
    /// The most news of a wave that are told one by one; and the most bad ones.
    static let limit = 100
    /// How long without more ends a wave.
    static let quiet: Duration = .seconds(5)
    /// A wave without an end is cut into pieces of this length.
    static let atMost: Duration = .seconds(60)

    /// What news have in common that are counted together.
    enum Topic: Hashable, Sendable {
        /// The runs that a signal of this name asked for.
        case signal(String)
        /// One kind of message of which there may be one for each pipeline.
        case message(JournalMessage)
    }

    /// What came of a run, and whether it is news by itself.
    struct News: Hashable, Sendable {
        enum Outcome: Hashable, Sendable { case changed, unchanged, failed }

        var outcome: Outcome
        /// It ended a failure that was told of.
        var isRecovery = false
        /// It is worth a line.
        var isNews: Bool
    }

    /// What is told of a wave that was too large to be told one by one.
    enum Summary: Hashable, Sendable {
        case runs(signal: String, Runs)
        /// So many were passed over.
        case more(JournalMessage, count: Int)
    }

    /// The runs of a wave.
    struct Runs: Hashable, Sendable {
        var runs = 0
        /// How many pipelines they were of, by what came of the last one. The three make the sum of all.
        var changed = 0
        var unchanged = 0
        var failed = 0
        /// How many pipelines recovered.
        var recovered = 0
        /// News that were not told.
        var passedOver = 0
        /// Failures among them.
        var failuresPassedOver = 0

        var pipelines: Int { changed + unchanged + failed }
    }

    private struct Burst: Hashable {
        let began: ContinuousClock.Instant
        var last: ContinuousClock.Instant
        var told = 0
        var toldFailures = 0
        var passedOver = 0
        var failuresPassedOver = 0
        var runs = 0
        var recovered = 0
        /// What came of each pipeline's runs so far; empty for a wave of messages.
        var outcomes: [String: News.Outcome] = [:]

        /// When it is over, if nothing more comes of it.
        var end: ContinuousClock.Instant { min(last + BurstSummary.quiet, began + BurstSummary.atMost) }
        /// It is told when it is over.
        var isLarge: Bool { passedOver > 0 || runs > BurstSummary.limit }

        /// Counts a run; returns whether it is to be told.
        mutating func ended(_ pipeline: String, _ news: News, at now: ContinuousClock.Instant) -> Bool {
            last = now
            runs += 1
            if news.isRecovery { recovered += 1 }
            // A copy that changed and was then found unchanged has changed in this wave.
            if news.outcome != .unchanged || outcomes[pipeline] != .changed { outcomes[pipeline] = news.outcome }
            return news.isNews && tells(isFailure: news.outcome == .failed)
        }

        /// Counts a message; returns whether it is to be told.
        mutating func said(at now: ContinuousClock.Instant) -> Bool {
            last = now
            return tells(isFailure: false)
        }

        /// Counts something that is worth a line; returns whether it gets one.
        mutating func tells(isFailure: Bool) -> Bool {
            if isFailure, toldFailures < BurstSummary.limit {
                toldFailures += 1
                return true
            }
            if !isFailure, told < BurstSummary.limit {
                told += 1
                return true
            }
            passedOver += 1
            if isFailure { failuresPassedOver += 1 }
            return false
        }
    }

    private var waves: [Topic: Burst] = [:]

    /// When ``elapsed(at:)`` is to be called; nil: there is nothing to sum up. It moves on while a wave goes on: to look
    /// when it was due at first, and again then, is enough.
    var due: ContinuousClock.Instant? {
        waves.values.lazy.filter(\.isLarge).map(\.end).min()
    }

    /// A run has ended; returns whether it is to be told by itself. What is no news is counted and not told.
    ///
    /// - Parameter signal: the first of its causes.
    mutating func ended(
        _ pipeline: String, by signal: String, _ news: News, at now: ContinuousClock.Instant
    ) -> (tell: Bool, summary: Summary?) {
        let topic = Topic.signal(signal)
        let summary = close(topic, at: now)
        // In its place: a copy of the wave would be one of all its outcomes, for each of its runs.
        let tell = waves[topic, default: Burst(began: now, last: now)].ended(pipeline, news, at: now)
        return (tell, summary)
    }

    /// There is a message of a kind that each pipeline may have; returns whether it is to be told.
    mutating func said(_ message: JournalMessage, at now: ContinuousClock.Instant) -> (tell: Bool, summary: Summary?) {
        let topic = Topic.message(message)
        let summary = close(topic, at: now)
        let tell = waves[topic, default: Burst(began: now, last: now)].said(at: now)
        return (tell, summary)
    }

    /// What there is to sum up of the waves that are over.
    mutating func elapsed(at now: ContinuousClock.Instant) -> [Summary] {
        waves.keys.sorted(by: Self.isBefore).compactMap { close($0, at: now) }
    }

    /// Ends all waves, over or not: nothing more comes.
    mutating func finish() -> [Summary] {
        defer { waves = [:] }
        return waves.sorted { Self.isBefore($0.key, $1.key) }.compactMap { Self.summary(of: $1, $0) }
    }

    /// Ends a wave of messages, because all that there is to say was said.
    mutating func finish(_ message: JournalMessage) -> Summary? {
        waves.removeValue(forKey: .message(message)).flatMap { Self.summary(of: $0, .message(message)) }
    }

    /// Ends a wave if it is over; returns what there is to say of it.
    private mutating func close(_ topic: Topic, at now: ContinuousClock.Instant) -> Summary? {
        guard let wave = waves[topic], now >= wave.end else { return nil }
        waves[topic] = nil
        return Self.summary(of: wave, topic)
    }

    private static func summary(of wave: Burst, _ topic: Topic) -> Summary? {
        guard wave.isLarge else { return nil }
        switch topic {
        case .message(let message): return .more(message, count: wave.passedOver)
        case .signal(let signal):
            var runs = Runs(
                runs: wave.runs, recovered: wave.recovered, passedOver: wave.passedOver,
                failuresPassedOver: wave.failuresPassedOver)
            for outcome in wave.outcomes.values {
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
        case (.message(let one), .message(let other)): one.rawValue < other.rawValue
        case (.signal, .message): true
        case (.message, .signal): false
        }
    }
}
