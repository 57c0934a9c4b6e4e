import FreshetControl
import FreshetModel
import Logging
import Testing
import WorldTestSupport

@testable import FreshetDaemon
@testable import FreshetPipelines

@Suite("Messages of a pipeline")
struct PipelineLoggerTests {
    private static let start = BootInstant.now
    private let log = LogRecorder()
    private let events = ControlEvents()
    private let generation = CurrentGeneration(number: 3, size: 5, digest: "ab", committedAt: 7, path: "/current/news")

    private func at(_ seconds: Double) -> BootInstant {
        Self.start.advanced(by: .milliseconds(Int64(seconds * 1000)))
    }

    private func logger(mode: UInt32 = 0o644) -> PipelineLogger {
        let readers = ContentReaders()
        var definition = PipelineDefinition(
            name: "news", source: .file("/data"), refresh: RefreshPolicy(), cache: CacheRules(file: "news"))
        definition.cache.mode = mode
        readers.set(definition)
        return PipelineLogger(
            name: "news",
            PipelineLogger.Destinations(
                log: log.logger, events: events, limiter: LogLimiter(log: log.logger, clock: FakeClock()),
                readers: readers))
    }

    @Test("the journal has no text that may quote a copy that not every user may read")
    func privateContent() {
        let quoting = RunFailure(.content, "the jq program failed: \"canary\" cannot be parsed as a number")
        let plain = RunFailure(.transient, "the origin answered 503")
        for (mode, failure, expected) in [
            (UInt32(0o644), quoting, quoting.message),
            (0o640, quoting, quoting.publicMessage),
            (0o640, plain, plain.message),
        ] {
            var logger = logger(mode: mode)
            logger.log(.runEnded(summary(.failed, at: at(0), failure: failure), next: nil), generation: generation)
            let errors = log.take().compactMap { $0.metadata["error"] }
            #expect(errors == [expected])
        }
        #expect(!quoting.publicMessage.contains("canary"))
    }

    private let failure = RunFailure(.transient, "the origin answered 503")

    @Test("a new copy is logged at info with its fields, an unchanged one at debug")
    func success() {
        var logger = logger()
        logger.log(.runEnded(summary(.changed, at: at(0)), next: nil), generation: generation)
        #expect(
            log.take() == [
                LogRecorder.Line(
                    level: .info, message: "changed",
                    metadata: [
                        "pipeline": "news", "run": "1", "causes": "network (2)", "outcome": "changed",
                        "duration": "1.5 s", "generation": "3", "message-id": JournalMessage.changed.rawValue,
                    ])
            ])
        logger.log(.runEnded(summary(.unchanged, at: at(0)), next: nil), generation: generation)
        #expect(log.take().map(\.level) == [.debug])
    }

    @Test("the first failure is a warning, then one per hour with the number of failures; the recovery is logged once")
    func failures() {
        var logger = logger()
        func fails(_ seconds: Double) -> LogRecorder.Line? {
            logger.log(.runEnded(summary(.failed, at: at(seconds), failure: failure), next: nil), generation: nil)
            return log.take().first
        }
        let first = fails(0)
        #expect(first?.level == .warning)
        #expect(first?.metadata["error"] == "the origin answered 503")
        #expect(first?.metadata["message-id"] == JournalMessage.failed.rawValue)
        #expect(first?.metadata["repeated"] == nil)
        #expect((1...9).map { fails(Double($0))?.level } == Array(repeating: .debug, count: 9))
        let hourly = fails(3600)
        #expect(hourly?.level == .warning)
        #expect(hourly?.metadata["repeated"] == "9")
        logger.log(.runEnded(summary(.unchanged, at: at(3700)), next: nil), generation: generation)
        let recovery = log.take()
        #expect(recovery.map(\.level) == [.info, .debug])
        #expect(recovery.first?.message == "recovered")
        #expect(recovery.first?.metadata["message-id"] == JournalMessage.recovered.rawValue)
        logger.log(.runEnded(summary(.unchanged, at: at(3800)), next: nil), generation: generation)
        #expect(log.take().map(\.message) == ["unchanged"])
        #expect(fails(3900)?.level == .warning)
    }

    @Test("a copy older than max-age is a warning, a younger one is logged at info; both are published")
    func expired() async {
        var logger = logger()
        let observation = events.observe()
        logger.log(.stateChanged(.loaded), generation: generation)
        logger.log(.expired(checked: .now - .seconds(90)), generation: generation)
        logger.log(.expiredNoMore, generation: generation)
        let lines = log.take()
        #expect(lines.map(\.level) == [.warning, .info])
        #expect(lines.map { $0.metadata["message-id"] } == [JournalMessage.expired, .expiredNoMore].map(\.rawValue))
        #expect(lines.first?.metadata["age"] == "1min 30s")
        #expect(lines.map { $0.metadata["pipeline"] } == ["news", "news"])
        #expect(await observation.next()?.detail == nil)
        let expired = await observation.next()
        #expect(expired?.kind == .state)
        #expect(expired?.state == .loaded)
        #expect(expired?.detail == "\(JournalMessage.expired.text)")
        #expect(await observation.next()?.detail == "\(JournalMessage.expiredNoMore.text)")
    }

    @Test("expired content is a warning, valid content is logged at info; both are published")
    func contentExpired() async {
        var logger = logger()
        let observation = events.observe()
        logger.log(.contentExpired, generation: generation)
        logger.log(.contentExpiredNoMore, generation: generation)
        let lines = log.take()
        #expect(lines.map(\.level) == [.warning, .info])
        let messages: [JournalMessage] = [.contentExpired, .contentExpiredNoMore]
        #expect(lines.map { $0.metadata["message-id"] } == messages.map(\.rawValue))
        #expect(await observation.next()?.detail == "\(JournalMessage.contentExpired.text)")
        #expect(await observation.next()?.detail == "\(JournalMessage.contentExpiredNoMore.text)")
    }

    @Test("a withdrawal is a warning, its end is logged at info; a failure meanwhile says that the copy is withdrawn")
    func withdrawn() async {
        var logger = logger()
        let observation = events.observe()
        logger.log(.withdrawn(checked: .now - .seconds(90)), generation: generation, isWithdrawn: true)
        logger.log(
            .runEnded(summary(.failed, at: at(0), failure: failure), next: nil), generation: nil, isWithdrawn: true)
        logger.log(.returned(isSame: true, causes: nil), generation: generation)
        let lines = log.take()
        #expect(lines.map(\.level) == [.warning, .warning, .info])
        #expect(lines.first?.metadata["age"] == "1min 30s")
        #expect(lines.first?.metadata["generation"] == "\(generation.number)")
        #expect(lines.dropFirst().first?.message == "failed, the copy stays withdrawn: {error}")
        #expect(lines.last?.metadata["message-id"] == JournalMessage.returned.rawValue)
        #expect(await observation.next()?.detail == "\(JournalMessage.withdrawn.text)")
        #expect(await observation.next()?.kind == .runEnded)
        #expect(await observation.next()?.detail == "\(JournalMessage.returned.text)")
    }

    @Test("the message of a failure says when the next attempt is, and whether there is a copy")
    func whatNext() {
        var logger = logger()
        let next = PlannedRun(at: .now + .seconds(90), reason: .retry)
        let failed = summary(.failed, at: at(0), failure: failure)
        logger.log(.runEnded(failed, next: next), generation: generation)
        var line = log.take().first
        #expect(line?.message == "failed, keeping the copy: {error}")
        #expect(line?.metadata["next"]?.hasPrefix("in 1min ") == true)
        logger = self.logger()
        var published = failure
        published.isPublished = true
        logger.log(.runEnded(summary(.failed, at: at(0), failure: published), next: next), generation: generation)
        #expect(log.take().first?.message == "failed: {error}")
        logger = self.logger()
        logger.log(.runEnded(failed, next: PlannedRun(at: .now, reason: .retry)), generation: generation)
        #expect(log.take().first?.metadata["next"] == "now")
        logger = self.logger()
        logger.log(.runEnded(failed, next: nil), generation: nil)
        line = log.take().first
        #expect(line?.message == "failed, there is no copy yet: {error}")
        #expect(line?.metadata["next"] == nil)
        #expect(line?.metadata["message-id"] == JournalMessage.failed.rawValue)
    }

    @Test("all messages have an identifier, also those at debug")
    func identifiers() {
        var logger = logger()
        logger.log(.received(RunCause("network", first: at(0))), generation: nil)
        logger.log(.waitingBegan(Wait(.network)), generation: nil)
        logger.log(.runEnded(summary(.superseded, at: at(0)), next: nil), generation: nil)
        #expect(log.take().allSatisfy { $0.metadata["message-id"]?.count == 32 })
    }

    @Test("a network that is not ready and a superseded run are logged at debug only")
    func notLogged() {
        var logger = logger()
        let failure = RunFailure(.connection, "no route")
        logger.log(.runEnded(summary(.failed, at: at(0), failure: failure, counts: false), next: nil), generation: nil)
        logger.log(.runEnded(summary(.superseded, at: at(0)), next: nil), generation: nil)
        logger.log(.runEnded(summary(.cancelled, at: at(0)), next: nil), generation: nil)
        #expect(log.take().map(\.level) == [.debug, .debug, .debug])
        // They do not count as failures, so no recovery is logged.
        logger.log(.runEnded(summary(.unchanged, at: at(1)), next: nil), generation: generation)
        #expect(log.take().map(\.message) == ["unchanged"])
    }

    @Test("received signals and waits are logged at debug")
    func everythingElse() {
        var logger = logger()
        let cause = RunCause("network", first: at(0))
        logger.log(.received(cause), generation: nil)
        logger.log(.skipped([cause], freshUntil: at(60)), generation: nil)
        logger.log(.ignored([cause], run: 3), generation: nil)
        logger.log(.joined(cause, run: 3), generation: nil)
        logger.log(.waitingBegan(Wait(.network)), generation: nil)
        logger.log(.waitingEnded(.network), generation: nil)
        logger.log(.retryPlanned(at: at(1), failures: 1, after: failure), generation: nil)
        logger.log(.stateChanged(.loaded), generation: nil)
        let lines = log.take()
        #expect(lines.count == 6)
        #expect(lines.allSatisfy { $0.level == .debug && $0.metadata["pipeline"] == "news" })
    }

    @Test("subscribers get runs and states, and a generation only if one was committed")
    func followers() async {
        var logger = logger()
        let observation = events.observe()
        let order = RunOrder(
            run: 4, reason: .signals, causes: [RunCause("start", first: at(0))], started: at(0), epoch: 1)
        logger.log(.runStarted(order), generation: generation)
        logger.log(.runEnded(summary(.changed, run: 4, at: at(1)), next: nil), generation: generation)
        logger.log(.runEnded(summary(.unchanged, run: 5, at: at(1)), next: nil), generation: generation)
        logger.log(.stateChanged(.waiting(Wait(.backoff, until: at(9)))), generation: nil)
        let started = await observation.next()
        #expect(started?.kind == .runStarted)
        #expect(started?.run?.number == 4)
        #expect(started?.run?.causes.map(\.signal) == ["start"])
        let changed = await observation.next()
        #expect(changed?.run?.outcome == .changed)
        #expect(changed?.generation?.number == 3)
        #expect(await observation.next()?.generation == nil)
        let state = await observation.next()
        #expect(state?.state == .waiting)
        #expect(state?.waitingFor == .backoff)
        #expect(state?.waitingUntil != nil)
    }

    @Test(
        "durations are rounded to at most two units",
        arguments: [
            (-5_000, "0 µs"), (0, "0 µs"), (999, "999 µs"), (1_000, "1 ms"), (999_999, "999 ms"), (1_000_000, "1.0 s"),
            (59_999_000, "59.9 s"), (60_000_000, "1min 0s"), (899_900_000, "14min 59s"), (3_600_000_000, "1h 0min"),
            (86_399_000_000, "23h 59min"), (90_000_000_000, "1d 1h"),
        ])
    func rounded(_ microseconds: Int, _ text: String) {
        #expect(Duration.microseconds(microseconds).rounded == text)
    }
}
