import FreshetControl
import FreshetSignals
import Logging
import Testing

@testable import FreshetDaemon

@Suite("The book of signals")
struct SignalRegistryTests {
    private let log = LogBook()
    private let clock = FakeClock()
    private let events = ControlEvents()

    private func book(level: Logger.Level = .trace) -> SignalRegistry {
        var logger = log.logger
        logger.logLevel = level
        return SignalRegistry(events: events, log: logger, desk: LogLimiter(log: logger, clock: clock), clock: clock)
    }

    private func line(
        _ message: JournalMessage, _ level: Logger.Level, text: String? = nil, _ values: [String: String]
    ) -> LogBook.Line {
        LogBook.Line(
            level: level, message: text ?? "\(message.text)",
            metadata: values.merging(["message-id": message.rawValue]) { $1 })
    }

    @Test("book, follower and journal have the same number of each occurrence, which is the source's")
    func numbers() async {
        let book = book()
        let source = SignalSource("network")
        source.fire("before")
        let following = book.follow(source.signal, row: "network 192.0.2.7")
        let observation = events.observe()
        source.fire("reachable via wan0")
        source.fire("path changed")
        #expect(book["network 192.0.2.7"].fired == 3)
        #expect(book["network 192.0.2.7"].detail == "path changed")
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

    @Test("what has no source of its own is numbered too, and names its pipeline")
    func withoutSource() async {
        let book = book()
        let observation = events.observe()
        for name in ["jwks", "prices"] { book.note("timer", nil, pipeline: name) }
        _ = await observation.next()
        let event = await observation.next()
        #expect(event?.number == 2 && event?.pipeline == "prices" && event?.source == nil)
        #expect(log.lines.last == line(.fired, .debug, ["signal": "timer", "number": "2", "pipeline": "prices"]))
    }

    @Test("of what is news the first is information; then, when it is calm, how many more there were")
    func waves() {
        let book = book(level: .info)
        let source = SignalSource("file /a")
        let following = book.follow(source.signal, row: "file /a", isNews: true)
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

    @Test("what never calms down is told once a minute, and at the daemon's end")
    func endless() {
        let book = book(level: .info)
        let source = SignalSource("dbus")
        let following = book.follow(source.signal, row: "dbus system member=Done", isNews: true)
        for _ in 0...61 {
            source.fire()
            clock.advance(by: .seconds(1))
        }
        let lines = log.take()
        #expect(lines.map(\.message) == ["{signal} fired", "{signal} keeps firing, {count} times more"])
        #expect(lines.last?.metadata["source"] == "dbus system member=Done")
        book.finish()
        let rest = log.take()
        #expect(rest.map(\.message) == ["{signal} fired {count} times more"])
        let told = 1 + (lines + rest).compactMap { $0.metadata["count"].flatMap { Int($0) } }.reduce(0, +)
        #expect(told == 62)
        withExtendedLifetime(following) {}
    }

    @Test("what other messages tell of is silent above debug, however often it fires")
    func silent() {
        let book = book(level: .info)
        let source = SignalSource("network")
        let following = book.follow(source.signal, row: "network")
        for _ in 1...100 { source.fire("path changed") }
        book.note("operator", "refresh", pipeline: "a")
        #expect(log.lines == [] && clock.due == nil)
        #expect(book["network"].fired == 100)
        withExtendedLifetime(following) {}
    }

    @Test("many sources that fire at once are told one by one up to a limit")
    func manySources() {
        let book = book(level: .info)
        let sources = (0...BurstSummary.limit).map { SignalSource("file /\($0)") }
        let followings = sources.enumerated().map { book.follow($1.signal, row: "file /\($0)", isNews: true) }
        for source in sources { source.fire("written") }
        #expect(log.lines.count == BurstSummary.limit)
        withExtendedLifetime(followings) {}
    }

    @Test("a row is followed once, and forgotten with its source; made anew, both count from 1")
    func forgotten() {
        let book = book()
        do {
            let source = SignalSource("file /a")
            let first = book.follow(source.signal, row: "file /a")
            let second = book.follow(source.signal, row: "file /a")
            #expect(first === second)
            #expect(source.fire() == 1)
            #expect(book["file /a"].fired == 1)
            withExtendedLifetime((first, second)) {}
        }
        #expect(book["file /a"] == SignalRegistry.Entry())
        let source = SignalSource("file /a")
        let following = book.follow(source.signal, row: "file /a")
        source.fire()
        #expect(book["file /a"].fired == 1)
        withExtendedLifetime(following) {}
    }

    @Test("a fact that is another one is told to those who follow; the first, and the same again, is no news")
    func facts() async {
        let book = book()
        let source = SignalSource("resume")
        let following = book.follow(source.signal, row: "resume")
        let observation = events.observe()
        for fact in ["awake", "awake", "going to sleep", "going to sleep", "awake"] { book.fact("resume", fact) }
        #expect(await observation.next()?.detail == "going to sleep")
        let event = await observation.next()
        #expect(event?.kind == .fact && event?.signal == "resume" && event?.detail == "awake")
        #expect(book["resume"].fired == 0 && log.lines == [])
        withExtendedLifetime(following) {}
    }

    @Test("the row of a source says how much it ignored")
    func status() {
        let book = book()
        book.note("resume", "slept 8.0 s")
        let status = book.status("resume", fact: "awake", ignored: 7)
        #expect(status.fired == 1 && status.ignored == 7 && status.lastDetail == "slept 8.0 s")
        #expect(book.status("start", fact: "").ignored == nil)
    }
}
