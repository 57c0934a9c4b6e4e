import FreshetControl
import FreshetSignals
import Logging
import Testing

@testable import FreshetDaemon

@Suite("The recorder of signals")
struct SignalRecorderTests {
    private let log = LogRecorder()
    private let clock = FakeClock()
    private let events = ControlEvents()

    private func registry(level: Logger.Level = .trace) -> SignalRecorder {
        var logger = log.logger
        logger.logLevel = level
        return SignalRecorder(events: events, log: logger, limiter: LogLimiter(log: logger, clock: clock), clock: clock)
    }

    private func line(
        _ message: JournalMessage, _ level: Logger.Level, text: String? = nil, _ values: [String: String]
    ) -> LogRecorder.Line {
        LogRecorder.Line(
            level: level, message: text ?? "\(message.text)",
            metadata: values.merging(["message-id": message.rawValue]) { $1 })
    }

    @Test("registry, subscribers and journal have the source's number of each occurrence")
    func numbers() async {
        let registry = registry()
        let source = SignalSource("network")
        source.fire("before")
        let following = registry.follow(source.signal, row: "network 192.0.2.7")
        let observation = events.observe()
        source.fire("reachable via wan0")
        source.fire("path changed")
        #expect(registry["network 192.0.2.7"].fired == 3)
        #expect(registry["network 192.0.2.7"].detail == "path changed")
        for (number, detail) in [(2, "reachable via wan0"), (3, "path changed")] {
            let event = await observation.next()
            #expect(event?.kind == .signal && event?.signal == "network" && event?.source == "network 192.0.2.7")
            #expect(event?.number == Int64(number) && event?.detail == detail)
        }
        #expect(
            log.lines == [
                line(
                    .fired, .debug,
                    ["signal": "network", "source": "network 192.0.2.7", "number": "2", "detail": "reachable via wan0"]),
                line(
                    .fired, .debug,
                    ["signal": "network", "source": "network 192.0.2.7", "number": "3", "detail": "path changed"]),
            ])
        withExtendedLifetime(following) {}
    }

    @Test("a signal without a source is numbered too, and names its pipeline")
    func withoutSource() async {
        let registry = registry()
        let observation = events.observe()
        for name in ["jwks", "prices"] { registry.recordOccurrence("timer", nil, pipeline: name) }
        _ = await observation.next()
        let event = await observation.next()
        #expect(event?.number == 2 && event?.pipeline == "prices" && event?.source == nil)
        #expect(log.lines.last == line(.fired, .debug, ["signal": "timer", "number": "2", "pipeline": "prices"]))
    }

    @Test("the first occurrence is logged at info, and after the quiet period the number of further ones")
    func bursts() {
        let registry = registry(level: .info)
        let source = SignalSource("file /a")
        let following = registry.follow(source.signal, row: "file /a", logsAtInfo: true)
        source.fire("replaced")
        #expect(log.take() == [line(.fired, .info, ["signal": "file /a", "number": "1", "detail": "replaced"])])
        #expect(clock.due == nil, "what fires once wakes nobody")
        for _ in 1...99 { source.fire("written") }
        #expect(log.take() == [])
        clock.advance(by: FlapLimiter.quiet)
        #expect(
            log.take() == [
                line(
                    .firedMore, .info,
                    ["signal": "file /a", "number": "100", "detail": "written", "count": "99"])
            ])
        #expect(clock.due == nil)
        source.fire("removed")
        #expect(log.take().map(\.level) == [.info])
        withExtendedLifetime(following) {}
    }

    @Test("a burst that does not end is logged once a minute, and at the end of the daemon")
    func endless() {
        let registry = registry(level: .info)
        let source = SignalSource("dbus")
        let following = registry.follow(source.signal, row: "dbus system member=Done", logsAtInfo: true)
        for _ in 0...61 {
            source.fire()
            clock.advance(by: .seconds(1))
        }
        let lines = log.take()
        #expect(lines.map(\.message) == ["{signal} fired", "{signal} keeps firing: {count} more times"])
        #expect(lines.last?.metadata["source"] == "dbus system member=Done")
        registry.finish()
        let rest = log.take()
        #expect(rest.map(\.message) == ["{signal} fired {count} more times"])
        let total = 1 + (lines + rest).compactMap { $0.metadata["count"].flatMap { Int($0) } }.reduce(0, +)
        #expect(total == 62)
        withExtendedLifetime(following) {}
    }

    @Test("a source with other messages is not logged above debug, however often it fires")
    func silent() {
        let registry = registry(level: .info)
        let source = SignalSource("network")
        let following = registry.follow(source.signal, row: "network")
        for _ in 1...100 { source.fire("path changed") }
        registry.recordOccurrence("operator", "refresh", pipeline: "a")
        #expect(log.lines == [] && clock.due == nil)
        #expect(registry["network"].fired == 100)
        withExtendedLifetime(following) {}
    }

    @Test("many sources that fire at the same time are logged individually up to a limit")
    func manySources() {
        let registry = registry(level: .info)
        let sources = (0...BurstSummary.limit).map { SignalSource("file /\($0)") }
        let followings = sources.enumerated().map { registry.follow($1.signal, row: "file /\($0)", logsAtInfo: true) }
        for source in sources { source.fire("written") }
        #expect(log.lines.count == BurstSummary.limit)
        withExtendedLifetime(followings) {}
    }

    @Test("a row is followed once, and removed with its source; if they are created again, both count from 1")
    func forgotten() {
        let registry = registry()
        do {
            let source = SignalSource("file /a")
            let first = registry.follow(source.signal, row: "file /a")
            let second = registry.follow(source.signal, row: "file /a")
            #expect(first === second)
            #expect(source.fire() == 1)
            #expect(registry["file /a"].fired == 1)
            withExtendedLifetime((first, second)) {}
        }
        #expect(registry["file /a"] == SignalRecorder.Entry())
        let source = SignalSource("file /a")
        let following = registry.follow(source.signal, row: "file /a")
        source.fire()
        #expect(registry["file /a"].fired == 1)
        withExtendedLifetime(following) {}
    }

    @Test("a changed fact is published; the first fact and the same fact again are not")
    func facts() async {
        let registry = registry()
        let source = SignalSource("resume")
        let following = registry.follow(source.signal, row: "resume")
        let observation = events.observe()
        for fact in ["awake", "awake", "going to sleep", "going to sleep", "awake"] { registry.fact("resume", fact) }
        #expect(await observation.next()?.detail == "going to sleep")
        let event = await observation.next()
        #expect(event?.kind == .fact && event?.signal == "resume" && event?.detail == "awake")
        #expect(registry["resume"].fired == 0 && log.lines == [])
        withExtendedLifetime(following) {}
    }

    @Test("the row of a source has the number of ignored events")
    func status() {
        let registry = registry()
        registry.recordOccurrence("resume", "slept 8.0 s")
        let status = registry.status("resume", fact: "awake", ignored: 7)
        #expect(status.fired == 1 && status.ignored == 7 && status.lastDetail == "slept 8.0 s")
        #expect(registry.status("start", fact: "").ignored == nil)
    }
}
