import FreshetControl
import FreshetPipelines
import Logging

/// What a pipeline has to say: each event of its engine goes to the journal, at the level that it is news at, and to
/// those who follow.
struct PipelineVoice: Sendable {
    let name: String
    let log: Logger
    let events: ControlEvents
    let book: SignalBook
    private var news = FailureNews()

    init(name: String, log: Logger, events: ControlEvents, book: SignalBook) {
        self.name = name
        var log = log
        log[metadataKey: "pipeline"] = .string(name)
        self.log = log
        self.events = events
        self.book = book
    }

    /// - Parameter generation: what is offered now.
    mutating func say(_ event: EngineEvent, generation: OfferedGeneration?) {
        switch event {
        case .heard(let cause):
            log.debug(
                "heard a signal", metadata: ["signal": .string(cause.signal), "count": .stringConvertible(cause.count)])
        case .suppressed(let causes, let freshUntil):
            log.debug(
                "the copy is fresh enough, nothing is fetched",
                metadata: [
                    "causes": .string(causes.summary),
                    "fresh-for": .string("\((freshUntil - .now).rounded) more"),
                ])
        case .waitingBegan(let wait):
            log.debug("waiting", metadata: metadata(.waiting, ["for": .string(wait.text)]))
        case .waitingEnded(let reason):
            log.debug("waited long enough", metadata: ["for": .string(reason.rawValue)])
        case .runStarted(let order):
            log.debug(
                "run started",
                metadata: ["run": .stringConvertible(order.run), "causes": .string(order.causes.summary)])
            events.publish(.runStarted(RunStatus(order), of: name, at: WallClock.now))
        case .runEnded(let summary, _):
            ended(summary)
            events.publish(
                .runEnded(
                    RunStatus(summary), of: name,
                    generation: summary.outcome == .changed ? generation.map(GenerationStatus.init) : nil,
                    at: WallClock.now))
        case .retryPlanned(let instant, let failures, _):
            log.debug(
                "trying again",
                metadata: ["in": .string("\((instant - .now).rounded)"), "failures": .stringConvertible(failures)])
        case .stateChanged(let activity):
            var wait: Wait?
            if case .waiting(let reason) = activity { wait = reason }
            events.publish(
                .state(
                    PipelineState(activity), of: name, waitingFor: wait.map { WaitingReason($0.reason) },
                    waitingUntil: wait?.until.map(WallClock.microseconds(at:)), at: WallClock.now))
        }
    }

    private mutating func ended(_ summary: RunSummary) {
        var values: Logger.Metadata = [
            "run": .stringConvertible(summary.run), "causes": .string(summary.causes.summary),
            "outcome": .string(summary.outcome.rawValue), "duration": .string("\(summary.duration.rounded)"),
        ]
        if let generation = summary.generation { values["generation"] = .stringConvertible(generation) }
        if let failure = summary.failure { values["error"] = .string(failure.message) }
        switch summary.outcome {
        case .changed:
            recover()
            log.info("changed", metadata: metadata(.changed, values))
        case .unchanged:
            recover()
            log.debug("unchanged", metadata: metadata(.unchanged, values))
        case .failed where summary.counts:
            guard case .say(let passedOver) = news.failed(at: summary.ended) else {
                log.debug("failed again, keeping the copy", metadata: metadata(.failed, values))
                return
            }
            if passedOver > 0 { values["repeated"] = .stringConvertible(passedOver) }
            log.warning("failed, keeping the copy", metadata: metadata(.failed, values))
        case .failed:
            log.debug("the network is not ready, trying again", metadata: values)
        case .superseded, .cancelled:
            log.debug("run ended before its time", metadata: values)
        }
    }

    private mutating func recover() {
        if news.succeeded() { log.info("recovered", metadata: metadata(.recovered, [:])) }
    }

    private func metadata(_ message: JournalMessage, _ values: Logger.Metadata) -> Logger.Metadata {
        values.merging(["message-id": .string(message.rawValue)]) { value, _ in value }
    }
}

extension Wait {
    /// Such as `network`, or `back-off, 3.2 s more`.
    var text: String {
        until.map { "\(reason.rawValue), \(($0 - .now).rounded) more" } ?? reason.rawValue
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
