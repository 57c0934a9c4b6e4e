import Logging
import Testing

@testable import FreshetSystemd

private func record(
    _ message: Logger.Message, level: Logger.Level = .info, error: (any Error)? = nil,
    _ metadata: Logger.Metadata = [:], handler: Logger.Metadata = [:], provided: Logger.Metadata = [:]
) -> LogRecord {
    let event = LogEvent(
        level: level, message: message, error: error, metadata: metadata, source: nil, file: "Module/File.swift",
        function: "call()", line: 7)
    return LogRecord(event, label: "engine", metadata: handler, provided: provided)
}

private struct Refused: Error, CustomStringConvertible {
    var description: String { "refused by https://ann:pw@example.com/?t=1" }
}

@Suite("The destination of the log")
struct LogDestinationTests {
    @Test("is the journal only if standard error is the stream that JOURNAL_STREAM names")
    func journal() {
        let environment = ["JOURNAL_STREAM": "8:4711", "TERM": "xterm"]
        #expect(LogDestination.choose(environment: environment, isTerminal: false, stream: (8, 4_711)) == .journal)
        #expect(LogDestination.choose(environment: environment, isTerminal: false, stream: (8, 4_712)) == .lines)
        #expect(LogDestination.choose(environment: environment, isTerminal: false, stream: (9, 4_711)) == .lines)
        #expect(LogDestination.choose(environment: environment, isTerminal: false, stream: nil) == .lines)
        #expect(LogDestination.choose(environment: [:], isTerminal: false, stream: (8, 4_711)) == .lines)
    }

    @Test(
        "is a terminal with colour if the variables allow it",
        arguments: [
            (["TERM": "xterm"], true), (["TERM": "dumb"], false), (["NO_COLOR": "1"], false), (["NO_COLOR": ""], true),
            (["SYSTEMD_COLORS": "0"], false), (["SYSTEMD_COLORS": "false"], false),
            (["SYSTEMD_COLORS": "16", "NO_COLOR": "1", "TERM": "dumb"], true),
        ])
    func colour(_ environment: [String: String], _ colour: Bool) {
        let destination = LogDestination.choose(environment: environment, isTerminal: true, stream: (1, 2))
        #expect(destination == .terminal(colour: colour))
    }
}

@Suite("A log line for people")
struct LogLineTests {
    @Test("is a sentence, and then the values that are not in the sentence")
    func sentence() {
        let record = record("changed", ["pipeline": "jwks", "generation": "3", "causes": "network (2), timer"])
        #expect(record.sentence == "jwks: changed, generation 3 (causes=network (2), timer)")
    }

    @Test("names the pipeline in a command of the message, too")
    func pipelineInMessage() {
        #expect(record("held ('release {pipeline}')", ["pipeline": "jwks"]).sentence == "jwks: held ('release jwks')")
    }

    @Test("may contain values in its text, which are then not repeated")
    func words() {
        #expect(
            record("{signal} woke {n} pipelines", ["n": "120", "signal": "network", "runs": "130"]).sentence
                == "network woke 120 pipelines (runs=130)")
        // A placeholder without a value stays, and placeholders within a value are not replaced.
        #expect(record("{a} {b} {", ["a": "{c}", "c": "x\n"]).sentence == "{c} {b} { (c=x\\n)")
        #expect(record("{a}{a}", ["a": "1"]).sentence == "1{a}")
    }

    @Test("contains a position once: an error with a position begins with it")
    func place() {
        let record = record("fault: {error}", ["error": "a.yaml:3:4: x", "file": "a.yaml", "line": "3", "column": "4"])
        #expect(record.sentence == "fault: a.yaml:3:4: x")
        #expect(record.journalFields(identifier: "f").contains("FRESHET_COLUMN=4"))
    }

    @Test("has no empty parentheses")
    func bare() {
        #expect(record("ready").sentence == "ready")
    }

    @Test("has error and causes before the other values, and no outcome")
    func order() {
        let record = record("run ended", ["run": "4", "causes": "start", "attempt": "1", "error": "timed out"])
        #expect(record.sentence == "run ended (error=timed out; causes=start; attempt=1; run=4)")
    }

    @Test("escapes control characters, line breaks and direction marks")
    func escapes() {
        let hostile = record("changed", ["pipeline": "a\n<3>b", "x": "\u{1b}[31m\u{202e}\u{2028}\r\t\u{7f}\u{9b}"])
        #expect(
            hostile.sentence
                == "a\\n<3>b: changed (x=\\u{1b}[31m\\u{202e}\\u{2028}\\r\\t\\u{7f}\\u{9b})")
    }

    @Test(
        "quotes a value that could be taken for several or for none",
        arguments: [
            ("", "\"\""), (" a", "\" a\""), ("a; b=c", "\"a; b=c\""), ("a\"b", "\"a\\\"b\""), ("a b", "a b"),
        ])
    func quotes(_ value: String, _ shown: String) {
        #expect(record("m", ["k": .string(value)]).sentence == "m (k=\(shown))")
    }

    @Test(
        "has the priority of syslog for a log collector",
        arguments: [
            (Logger.Level.trace, 7), (.debug, 7), (.info, 6), (.notice, 5), (.warning, 4), (.error, 3), (.critical, 2),
        ])
    func priorities(_ level: Logger.Level, _ priority: Int) {
        #expect(record("m", level: level).collectedLine == "<\(priority)>m\n")
    }

    @Test("has time and level on a terminal, and colour only if it is allowed")
    func terminal() {
        let warning = record("unreachable", level: .warning)
        #expect(warning.terminalLine(time: "14:03:07.250", colour: false) == "14:03:07.250 warn  unreachable\n")
        #expect(
            warning.terminalLine(time: "14:03:07.250", colour: true)
                == "14:03:07.250 \u{1b}[33mwarn \u{1b}[0m unreachable\n")
        #expect(record("m").terminalLine(time: "0", colour: true) == "0 info  m\n")
    }
}

@Suite("A journal entry")
struct JournalEntryTests {
    @Test("has a sentence, and separate fields for the constant message and each value")
    func fields() {
        let id = "0123456789abcdef0123456789abcdef"
        let record = record(
            "changed", level: .notice,
            ["pipeline": "jwks", "run": "12", "retry-after": "3 s", "message-id": .string(id)])
        #expect(
            record.journalFields(identifier: "freshetd") == [
                "MESSAGE=jwks: changed (retry-after=3 s; run=12)", "FRESHET_MESSAGE=changed", "PRIORITY=5",
                "SYSLOG_IDENTIFIER=freshetd", "FRESHET_LOGGER=engine",
                "CODE_FILE=Module/File.swift", "CODE_LINE=7", "CODE_FUNC=call()", "MESSAGE_ID=\(id)",
                "FRESHET_PIPELINE=jwks", "FRESHET_RETRY_AFTER=3 s", "FRESHET_RUN=12",
            ])
    }

    @Test("has a field for each element of a list, and the line has no list of pipelines")
    func lists() {
        let record = record(
            "done", ["pipeline": ["a", "b"], "names": "a b", "others": ["c", "https://u:p@x.example/"]])
        let fields = record.journalFields(identifier: "freshetd")
        #expect(
            fields.suffix(5) == [
                "FRESHET_NAMES=a b", "FRESHET_OTHERS=c", "FRESHET_OTHERS=https://x.example/", "FRESHET_PIPELINE=a",
                "FRESHET_PIPELINE=b",
            ], "\(fields)")
        #expect(record.sentence.hasPrefix("done (names=a b; others="))
        let empty = FreshetSystemdTests.record("m", ["pipeline": []])
        #expect(empty.journalFields(identifier: "f").allSatisfy { !$0.hasPrefix("FRESHET_P") })
    }

    @Test("keeps line breaks in a value: a field may contain any byte")
    func binary() {
        #expect(record("m", ["error": "a\nb"]).journalFields(identifier: "f").contains("FRESHET_ERROR=a\nb"))
    }

    @Test(
        "has field names that journald accepts",
        arguments: [
            ("pipeline", "FRESHET_PIPELINE"), ("a.b-c d", "FRESHET_A_B_C_D"), ("é", "FRESHET___"),
            ("_X9", "FRESHET__X9"),
            (String(repeating: "k", count: 80), "FRESHET_" + String(repeating: "K", count: 56)),
        ])
    func names(_ key: String, _ name: String) {
        #expect(LogRecord.fieldName(for: key) == name)
    }
}

@Suite("A log record")
struct LogRecordTests {
    @Test("prefers the call's metadata to the provider's, and that to the handler's")
    func merging() {
        let record = record(
            "m", ["a": "call"], handler: ["a": "h", "b": "h", "c": "h"], provided: ["a": "p", "b": "p"])
        #expect(record.sentence == "m (a=call; b=p; c=h)")
    }

    @Test("contains no secret of a URL")
    func redaction() {
        let record = record("m", error: Refused(), ["url": "https://ann:pw@example.com/a?token=1"])
        #expect(
            record.sentence == #"m (error="refused by https://example.com/?t=…"; url="https://example.com/a?token=…")"#)
    }

    @Test("truncates a value at its limit")
    func limit() throws {
        let fits = String(repeating: "v", count: LogRecord.valueLimit)
        #expect(record("m", ["k": .string(fits)]).values.first?.value == fits)
        let cut = try #require(record("m", ["k": .string(fits + "v")]).values.first?.value)
        #expect(cut.utf8.count == LogRecord.valueLimit)
        #expect(cut.hasSuffix("v…"))
    }
}

@Suite("The log handler")
struct JournalLogHandlerTests {
    @Test("follows the shared threshold until its logger has its own level")
    func threshold() {
        let threshold = LogThreshold(.info)
        var logger = Logger(label: "engine") { label in
            JournalLogHandler(label: label, identifier: "f", destination: .lines, threshold: threshold)
        }
        #expect(logger.logLevel == .info)
        threshold.level = .debug
        #expect(logger.logLevel == .debug)
        logger.logLevel = .error
        threshold.level = .trace
        #expect(logger.logLevel == .error)
    }
}
