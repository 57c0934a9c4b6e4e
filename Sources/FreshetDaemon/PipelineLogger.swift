import FreshetControl
import FreshetPipelines
import Logging

/// What a pipeline has to say: each event of its engine goes to the journal, at the level that it is news at, and to
/// those who follow.
struct PipelineLogger: Sendable {
    let name: String
    let log: Logger
    let events: ControlEvents
    /// Which news of many pipelines are told one by one.
    private let desk: LogLimiter
    private let readers: ContentReaders
    private var news = RepeatedFailureLimiter()
    /// The last one that was told.
    private var state = PipelineState.idle

    init(name: String, log: Logger, events: ControlEvents, desk: LogLimiter, readers: ContentReaders) {
        self.name = name
        self.readers = readers
        var log = log
        log[metadataKey: "pipeline"] = .string(name)
        self.log = log
        self.events = events
        self.desk = desk
    }

    /// - Parameters:
    ///   - generation: what is offered now; of a withdrawal, what is offered no more.
    ///   - isWithdrawn: readers do not find the copy.
    mutating func say(_ event: EngineEvent, generation: CurrentGeneration?, isWithdrawn: Bool = false) {
        switch event {
        case .heard(let cause):
            log.say(.heard, heard(cause))
        case .suppressed(let causes, let freshUntil):
            log.say(
                .freshEnough,
                [.causes: .string(causes.summary), .freshFor: .string("\((freshUntil - .now).rounded) more")])
        case .waitingBegan(let wait):
            log.say(.waiting, [.wait: .string(wait.text)])
        case .waitingEnded(let reason):
            log.say(.waited, [.wait: .string(reason.rawValue)])
        case .runStarted(let order):
            var fields: [JournalField: Logger.MetadataValue] = [
                .run: .stringConvertible(order.run), .causes: .string(order.causes.summary),
            ]
            if order.isUnconditional { fields[.detail] = .string(RunOrder.unconditional) }
            log.say(.runStarted, fields)
            events.publish(.runStarted(RunStatus(order), of: name, at: WallClock.now))
        // A comment is content.
        case .signed where !readers.isPublic(name): break
        case .signed(let comment):
            log.say(.signed, [.comment: .string(comment)])
        case .runEnded(let summary, let next):
            ended(summary, next: next, of: generation, isWithdrawn: isWithdrawn)
            events.publish(
                .runEnded(
                    RunStatus(summary), of: name,
                    generation: summary.outcome == .changed ? generation.map(GenerationStatus.init) : nil,
                    at: WallClock.now))
        case .retryPlanned(let instant, let failures, _):
            log.say(
                .retryPlanned,
                [.delay: .string("\((instant - .now).rounded)"), .failures: .stringConvertible(failures)])
        case .parametersDropped(let names):
            log.say(.parametersDropped, [.parameters: .string(names.joined(separator: ", "))])
        case .stateChanged(let activity):
            var wait: Wait?
            if case .waiting(let reason) = activity { wait = reason }
            state = PipelineState(activity)
            events.publish(
                .state(
                    PipelineState(activity), of: name, waitingFor: wait.map { WaitingReason($0.reason) },
                    waitingUntil: wait?.until.map(WallClock.microseconds(at:)), detail: wait?.detail, at: WallClock.now)
            )
        case .expired(let checked):
            desk.say(.expired, [.pipeline: .string(name), .age: .string((.now - checked).rounded)])
            publish(.expired)
        case .expiredNoMore:
            desk.say(.expiredNoMore, [.pipeline: .string(name)])
            publish(.expiredNoMore)
        case .contentExpired:
            desk.say(.contentExpired, sameCopy(generation))
            publish(.contentExpired)
        case .contentExpiredNoMore:
            desk.say(.contentExpiredNoMore, sameCopy(generation))
            publish(.contentExpiredNoMore)
        case .withdrawn(let checked):
            desk.say(.withdrawn, sameCopy(generation, checked))
            publish(.withdrawn)
        case .withdrawnDamaged(let lost, let checked):
            desk.say(.withdrawn, text: Self.withdrawnDamaged, sameCopy(lost, checked))
            publish(.withdrawn)
        case .returned:
            desk.say(.returned, sameCopy(generation))
            publish(.returned)
        }
    }

    /// Other words for a withdrawal, where nothing is left that could come back.
    static let withdrawnDamaged: Logger.Message =
        "the copy is older than max-age, and withdrawn: readers find nothing; it was damaged, and is not kept"

    private func sameCopy(
        _ generation: CurrentGeneration?, _ checked: ContinuousClock.Instant? = nil
    ) -> [JournalField: Logger.MetadataValue] {
        var fields: [JournalField: Logger.MetadataValue] = [
            .pipeline: .string(name), .generation: .string(generation.map { "\($0.number)" } ?? "none"),
        ]
        if let checked { fields[.age] = .string((.now - checked).rounded) }
        return fields
    }

    /// Tells those who follow what has become of the copy; the state is the same.
    private func publish(_ message: JournalMessage) {
        events.publish(.state(state, of: name, detail: "\(message.text)", at: WallClock.now))
    }

    private func heard(_ cause: RunCause) -> [JournalField: Logger.MetadataValue] {
        var fields: [JournalField: Logger.MetadataValue] = [
            .signal: .string(cause.signal), .count: .stringConvertible(cause.count),
        ]
        if let number = cause.number { fields[.number] = .stringConvertible(number) }
        return fields
    }

    private mutating func ended(
        _ summary: RunSummary, next: PlannedRun?, of generation: CurrentGeneration?, isWithdrawn: Bool
    ) {
        func fields() -> [JournalField: Logger.MetadataValue] {
            var fields: [JournalField: Logger.MetadataValue] = [
                .run: .stringConvertible(summary.run), .causes: .string(summary.causes.summary),
                .outcome: .string(summary.outcome.rawValue), .duration: .string(summary.duration.rounded),
            ]
            if let generation = summary.generation { fields[.generation] = .stringConvertible(generation) }
            if let failure = summary.failure {
                fields[.error] = .string(readers.isPublic(name) ? failure.message : failure.publicMessage)
            }
            return fields
        }
        if summary.reason.isLoadMore { return loadedMore(summary, fields(), of: generation) }
        switch summary.outcome {
        case .changed, .unchanged:
            let hasChanged = summary.outcome == .changed
            let isRecovery = summary.failure == nil && news.succeeded()
            let tell = desk.ended(
                name, summary,
                BurstSummary.News(
                    outcome: hasChanged ? .changed : .unchanged, isRecovery: isRecovery,
                    isNews: hasChanged || isRecovery))
            var done = fields()
            // What of it is not new is told by a line of its own.
            done[.error] = nil
            if isRecovery { log.say(.recovered, level: tell ? .info : .debug) }
            if hasChanged {
                log.say(.changed, level: tell ? .info : .debug, done)
            } else {
                log.say(.unchanged, done)
            }
            if hasChanged { sayTruncation(summary, of: generation) }
            if summary.failure != nil {
                let verdict = news.failed(at: summary.ended)
                log.say(
                    .branchesFailed, level: verdict != .passOver ? .warning : .debug,
                    fields().merging(following(verdict, next)) { $1 })
            }
        case .failed where summary.counts:
            let verdict = news.failed(at: summary.ended)
            let tell = desk.ended(name, summary, BurstSummary.News(outcome: .failed, isNews: verdict != .passOver))
            log.say(
                .failed, text: Self.failure(hasCopy: generation != nil, isWithdrawn: isWithdrawn),
                level: tell ? .warning : .debug,
                fields().merging(following(verdict, next)) { $1 })
        case .failed:
            log.say(summary.failure?.kind == .absent ? .runCutShort : .networkSettling, fields())
        case .superseded, .cancelled:
            log.say(.runCutShort, fields())
        }
    }

    /// Other words than the message's own for what that means to readers; nil: they have a copy.
    private static func failure(hasCopy: Bool, isWithdrawn: Bool) -> Logger.Message? {
        if hasCopy { return nil }
        return isWithdrawn ? "failed, the copy stays withdrawn: {error}" : "failed, there is no copy yet: {error}"
    }

    private func sayTruncation(_ summary: RunSummary, of generation: CurrentGeneration?) {
        guard let generation, generation.truncated, generation.number == summary.generation else { return }
        log.say(
            .truncated, [.run: .stringConvertible(summary.run), .generation: .stringConvertible(generation.number)])
    }

    /// A further page is no check: a failure begins no series of them, and a success ends none.
    private func loadedMore(
        _ summary: RunSummary, _ fields: [JournalField: Logger.MetadataValue], of generation: CurrentGeneration?
    ) {
        switch summary.outcome {
        case .changed:
            log.say(.changed, fields)
            sayTruncation(summary, of: generation)
        case .unchanged: log.say(.unchanged, fields)
        case .failed: log.say(.loadMoreFailed, fields)
        case .superseded, .cancelled: log.say(.runCutShort, fields)
        }
    }

    /// What a failure's line says besides: that it is not the first one, and when the next attempt comes.
    private func following(
        _ verdict: RepeatedFailureLimiter.Decision, _ next: PlannedRun?
    ) -> [JournalField: Logger.MetadataValue] {
        var fields: [JournalField: Logger.MetadataValue] = [:]
        if case .say(let passedOver) = verdict, passedOver > 0 { fields[.repeated] = .stringConvertible(passedOver) }
        if let next { fields[.next] = .string("in \((next.at - .now).rounded)") }
        return fields
    }
}

extension Wait {
    /// Such as `network`, `back-off, 3.2 s more`, or `slot: 64 requests are under way`.
    var text: String {
        (until.map { "\(reason.rawValue), \(($0 - .now).rounded) more" } ?? reason.rawValue)
            + (detail.map { ": \($0)" } ?? "")
    }
}

extension Duration {
    /// For people, two units at most: `284 µs`, `15 ms`, `3.2 s`, `14min 59s`, `6h 29min`, `3d 1h`.
    var rounded: String {
        let microseconds = max(0, microseconds)
        let (milliseconds, seconds) = (microseconds / 1_000, microseconds / 1_000_000)
        return switch seconds {
        case ..<1 where milliseconds < 1: "\(microseconds) µs"
        case ..<1: "\(milliseconds) ms"
        case ..<60: "\(seconds).\(milliseconds % 1_000 / 100) s"
        case ..<3_600: "\(seconds / 60)min \(seconds % 60)s"
        case ..<86_400: "\(seconds / 3_600)h \(seconds / 60 % 60)min"
        default: "\(seconds / 86_400)d \(seconds / 3_600 % 24)h"
        }
    }
}
