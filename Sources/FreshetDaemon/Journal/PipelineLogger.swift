import FreshetControl
import FreshetModel
import FreshetPipelines
import Logging

/// Logs each event of a pipeline's engine at a suitable level, and publishes it to clients that follow the pipeline.
struct PipelineLogger: Sendable {
    let name: String
    private let destinations: Destinations
    private var failureLimiter = RepeatedFailureLimiter()
    /// The last published state.
    private var state = PipelineState.idle

    /// What the loggers of all pipelines share.
    final class Destinations: Sendable {
        fileprivate let log: Logger
        fileprivate let events: ControlEvents
        /// Limits the messages of all pipelines together.
        fileprivate let limiter: LogLimiter
        fileprivate let readers: ContentReaders

        init(log: Logger, events: ControlEvents, limiter: LogLimiter, readers: ContentReaders) {
            self.log = log
            self.events = events
            self.limiter = limiter
            self.readers = readers
        }
    }

    init(name: String, _ destinations: Destinations) {
        self.name = name
        self.destinations = destinations
    }

    private var log: PipelineLog { PipelineLog(destinations.log, name: name) }
    private var events: ControlEvents { destinations.events }
    private var limiter: LogLimiter { destinations.limiter }
    private var readers: ContentReaders { destinations.readers }

    /// - Parameters:
    ///   - current: the current generation; for a withdrawal, the withdrawn generation. Evaluated only if the event
    ///     needs it.
    ///   - isWithdrawn: the copy is withdrawn.
    ///   - usage: for the end of a run: what it used.
    mutating func log(
        _ event: EngineEvent, generation current: @autoclosure () -> CurrentGeneration?, isWithdrawn: Bool = false,
        usage: RunUsage? = nil
    ) {
        switch event {
        case .received(let cause):
            log.log(.signalReceived, received(cause))
        case .skipped(let causes, let freshUntil):
            log.log(
                .freshEnough,
                [.causes: .string(causes.summary), .freshFor: .string("\((freshUntil - .now).rounded) more")])
        case .ignored(let causes, let run):
            log.log(.signalsIgnored, [.causes: .string(causes.summary), .run: .stringConvertible(run)])
        case .joined: break  // the client gets the run's result
        case .waitingBegan(let wait):
            log.log(.waiting, [.wait: .string(wait.text)])
        case .waitingEnded(let reason):
            log.log(.waited, [.wait: .string(reason.rawValue)])
        case .runStarted(let order):
            log.log(.runStarted, started(order))
            events.publish(.runStarted(RunStatus(order), of: name, at: WallClock.now))
        // The comment is a part of the content, so only users who may read the content may see it.
        case .signed where !readers.isPublic(name): break
        case .signed(let comment):
            log.log(.signed, level: limiter.logs(.signed) ? nil : .debug, [.comment: .string(comment)])
        case .runEnded(let summary, let next):
            let generation = current()
            ended(summary, next: next, of: generation, isWithdrawn: isWithdrawn)
            events.publish(
                .runEnded(
                    RunStatus(summary, usage), of: name,
                    generation: summary.outcome == .changed ? generation.map(GenerationStatus.init) : nil,
                    at: WallClock.now))
        case .retryPlanned(let instant, let failures, _):
            log.log(
                .retryPlanned,
                [.delay: .string("\((instant - .now).rounded)"), .failures: .stringConvertible(failures)])
        case .parametersDropped(let names):
            log.log(
                .parametersDropped, level: limiter.logs(.parametersDropped) ? nil : .debug,
                [.parameters: .string(names.joined(separator: ", "))])
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
            limiter.log(.expired, [.pipeline: .string(name), .age: .string((.now - checked).rounded)])
            publish(.expired)
        case .expiredNoMore:
            limiter.log(.expiredNoMore, [.pipeline: .string(name)])
            publish(.expiredNoMore)
        case .contentExpired:
            limiter.log(.contentExpired, sameCopy(current()))
            publish(.contentExpired)
        case .contentExpiredNoMore:
            limiter.log(.contentExpiredNoMore, sameCopy(current()))
            publish(.contentExpiredNoMore)
        case .withdrawn(let checked):
            limiter.log(.withdrawn, sameCopy(current(), checked))
            publish(.withdrawn)
        case .withdrawnDamaged(let lost, let checked):
            limiter.log(.withdrawn, text: Self.withdrawnDamaged, sameCopy(lost, checked))
            publish(.withdrawn)
        case .returned:
            limiter.log(.returned, sameCopy(current()))
            publish(.returned)
        }
    }

    /// The message for the withdrawal of a damaged copy, which cannot be published again.
    static let withdrawnDamaged: Logger.Message =
        "the copy is older than max-age and was withdrawn: readers find no file; it was damaged, and is not kept"

    private func sameCopy(
        _ generation: CurrentGeneration?, _ checked: BootInstant? = nil
    ) -> [JournalField: Logger.MetadataValue] {
        var fields: [JournalField: Logger.MetadataValue] = [
            .pipeline: .string(name), .generation: .string(generation.map { "\($0.number)" } ?? "none"),
        ]
        if let checked { fields[.age] = .string((.now - checked).rounded) }
        return fields
    }

    /// Publishes a change of the copy; the state of the pipeline is the same.
    private func publish(_ message: JournalMessage) {
        events.publish(.state(state, of: name, detail: "\(message.text)", at: WallClock.now))
    }

    private func started(_ order: RunOrder) -> [JournalField: Logger.MetadataValue] {
        var fields: [JournalField: Logger.MetadataValue] = [
            .run: .stringConvertible(order.run), .causes: .string(order.causes.summary),
        ]
        if order.isUnconditional { fields[.detail] = .string(RunOrder.unconditional) }
        return fields
    }

    private func received(_ cause: RunCause) -> [JournalField: Logger.MetadataValue] {
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
            if let mirror = summary.mirror { fields[.mirror] = .string(mirror) }
            if let failure = summary.failure {
                fields[.error] = .string(readers.isPublic(name) ? failure.message : failure.publicMessage)
            }
            return fields
        }
        /// Failed branches have their own message.
        func done() -> [JournalField: Logger.MetadataValue] {
            var fields = fields()
            fields[.error] = nil
            return fields
        }
        if summary.reason.isLoadMore { return loadedMore(summary, fields(), of: generation) }
        switch summary.outcome {
        case .changed, .unchanged:
            let hasChanged = summary.outcome == .changed
            let isRecovery = summary.failure == nil && failureLimiter.succeeded()
            let logs = limiter.ended(
                name, summary,
                BurstSummary.EndedRun(
                    outcome: hasChanged ? .changed : .unchanged, isRecovery: isRecovery,
                    isNew: hasChanged || isRecovery))
            if isRecovery { log.log(.recovered, level: logs ? .info : .debug) }
            if hasChanged {
                log.log(.changed, level: logs ? .info : .debug, done())
            } else {
                log.log(.unchanged, done())
            }
            if hasChanged { logTruncation(summary, of: generation) }
            if summary.failure != nil {
                let decision = failureLimiter.failed(at: summary.ended)
                let logs = decision != .suppress && limiter.logs(.branchesFailed)
                log.log(
                    .branchesFailed, level: logs ? .warning : .debug,
                    fields().merging(following(decision, next)) { $1 })
            }
        case .failed where summary.counts:
            let decision = failureLimiter.failed(at: summary.ended)
            let logs = limiter.ended(
                name, summary, BurstSummary.EndedRun(outcome: .failed, isNew: decision != .suppress))
            log.log(
                .failed,
                text: summary.failure?.isPublished == true
                    ? "failed: {error}" : Self.failure(hasCopy: generation != nil, isWithdrawn: isWithdrawn),
                level: logs ? .warning : .debug,
                fields().merging(following(decision, next)) { $1 })
        case .failed:
            log.log(summary.failure?.kind == .absent ? .runCutShort : .networkSettling, fields())
        case .superseded, .cancelled:
            log.log(.runCutShort, fields())
        }
    }

    /// The message for a failure that leaves readers without a copy; nil: readers have a copy.
    private static func failure(hasCopy: Bool, isWithdrawn: Bool) -> Logger.Message? {
        if hasCopy { return nil }
        return isWithdrawn ? "failed, the copy stays withdrawn: {error}" : "failed, there is no copy yet: {error}"
    }

    private func logTruncation(_ summary: RunSummary, of generation: CurrentGeneration?) {
        guard let generation, generation.truncated, generation.number == summary.generation else { return }
        log.log(
            .truncated, level: limiter.logs(.truncated) ? nil : .debug,
            [.run: .stringConvertible(summary.run), .generation: .stringConvertible(generation.number)])
    }

    /// Logs the end of a run that loaded a further page. Such a run does not check the copy, so its failure does not
    /// begin a series of failures and its success does not end one.
    private func loadedMore(
        _ summary: RunSummary, _ fields: [JournalField: Logger.MetadataValue], of generation: CurrentGeneration?
    ) {
        switch summary.outcome {
        case .changed:
            log.log(.changed, level: limiter.logs(.changed) ? nil : .debug, fields)
            logTruncation(summary, of: generation)
        case .unchanged: log.log(.unchanged, fields)
        case .failed: log.log(.loadMoreFailed, level: limiter.logs(.loadMoreFailed) ? nil : .debug, fields)
        case .superseded, .cancelled: log.log(.runCutShort, fields)
        }
    }

    /// The additional fields of a failure: the number of suppressed failures, and when the next attempt starts.
    private func following(
        _ decision: RepeatedFailureLimiter.Decision, _ next: PlannedRun?
    ) -> [JournalField: Logger.MetadataValue] {
        var fields: [JournalField: Logger.MetadataValue] = [:]
        if case .log(let skipped) = decision, skipped > 0 { fields[.repeated] = .stringConvertible(skipped) }
        if let next {
            let rest = next.at - .now
            fields[.next] = .string(rest < .milliseconds(1) ? "now" : "in \(rest.rounded)")
        }
        return fields
    }
}

/// Logs messages about one pipeline. A `Logger` with the name as metadata would keep a copy of its handler for each
/// pipeline.
private struct PipelineLog: Sendable {
    private let logger: Logger
    private let name: String

    init(_ logger: Logger, name: String) {
        self.logger = logger
        self.name = name
    }

    /// Logs a message with the name of the pipeline; see ``Logging/Logger/log(_:text:level:_:file:function:line:)``.
    func log(
        _ message: JournalMessage, text: Logger.Message? = nil, level: Logger.Level? = nil,
        _ fields: @autoclosure () -> [JournalField: Logger.MetadataValue] = [:], file: String = #fileID,
        function: String = #function, line: UInt = #line
    ) {
        logger.log(
            message, text: text, level: level, fields().merging([.pipeline: .string(name)]) { $1 }, file: file,
            function: function, line: line)
    }
}

extension Wait {
    /// Such as `network`, `backoff, 3.2 s more`, or `permit: 64 requests are in progress`.
    var text: String {
        let rest = until.map { $0 - .now }.flatMap { $0 < .milliseconds(1) ? nil : $0 }
        return (rest.map { "\(reason.rawValue), \($0.rounded) more" } ?? reason.rawValue)
            + (detail.map { ": \($0)" } ?? "")
    }
}

extension Duration {
    /// The duration for people, with at most two units: `284 µs`, `15 ms`, `3.2 s`, `14min 59s`, `6h 29min`, `3d 1h`.
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
