import FreshetControl
import FreshetPipelines
import FreshetSystemSignals
import Logging
import Testing

@testable import FreshetDaemon

@Suite("The log of messages that others can cause at any rate")
struct FlapLogTests {
    private let log = LogRecorder()
    private let clock = FakeClock()

    private func flapLog() -> FlapLog {
        FlapLog(log: log.logger, limiter: LogLimiter(log: log.logger, clock: clock), clock: clock)
    }

    /// Lines at the default level.
    private func lines() -> [LogRecorder.Line] { log.take().filter { $0.level > .debug } }

    @Test("the first message about a subject is logged, and after the quiet period the last one with a count")
    func quiet() {
        let flaps = flapLog()
        for number in 0..<1_000 {
            flaps.log(.fileUnwatched, about: "/a", [.file: "/a", .error: .string("error \(number)")])
        }
        #expect(lines().map { $0.metadata["error"] } == ["error 0"])
        clock.advance(by: FlapLimiter.quiet)
        let summary = lines()
        #expect(summary.map { $0.metadata["error"] } == ["error 999"])
        #expect(summary.first?.metadata["repeated"] == "998")
        #expect(clock.due == nil)
        flaps.log(.fileUnwatched, about: "/a", [.file: "/a", .error: "later"])
        #expect(lines().map { $0.metadata["error"] } == ["later"])
    }

    @Test("messages that do not end are logged once a minute, separately for each subject")
    func endless() {
        let flaps = flapLog()
        for _ in 0..<600 {
            for file in ["/a", "/b"] { flaps.log(.fileUnwatched, about: file, [.file: .string(file)]) }
            clock.advance(by: .milliseconds(500))
        }
        for file in ["/a", "/b"] {
            let count = log.lines.count { $0.level > .debug && $0.metadata["file"] == file }
            #expect((5...6).contains(count))
        }
        flaps.finish()
        #expect(lines().last?.metadata["repeated"] != nil)
        #expect(lines() == [])
    }

    @Test("files whose names differ only in their Unicode normalization are two subjects")
    func normalization() {
        let flaps = flapLog()
        for file in ["/\u{E9}", "/e\u{301}", "/K", "/\u{212A}"] {
            flaps.log(.fileUnwatched, about: file, [.file: .string(file)])
        }
        #expect(lines().count == 4)
    }

    @Test("the log stays below the rate limit of journald with any number of subjects and changes")
    func bound() {
        let flaps = flapLog()
        for _ in 0..<30 {
            for file in 0..<5_000 { flaps.log(.fileUnwatched, about: "\(file)", [.file: .stringConvertible(file)]) }
            clock.advance(by: .seconds(1))
        }
        flaps.finish()
        #expect(lines().count <= 2 * BurstSummary.limit)
    }

    @Test("a file that cannot be watched at times has one line and a count")
    func files() {
        let flaps = flapLog()
        let registry = SignalRecorder(
            events: ControlEvents(), log: log.logger, limiter: LogLimiter(log: log.logger, clock: clock), clock: clock)
        let files = FileEventPublisher(log: flaps, recorder: registry)
        for _ in 0..<500 {
            files.publish("/home/bob/a", FileFact(exists: false, obstacle: "its symbolic links lead in a circle"))
            files.publish("/home/bob/a", FileFact(exists: true))
        }
        #expect(lines().count == 1)
        clock.advance(by: FlapLimiter.quiet)
        #expect(lines().map { $0.metadata["repeated"] } == ["498"])
    }
}
