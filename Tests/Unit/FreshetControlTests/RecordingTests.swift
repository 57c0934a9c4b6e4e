import FreshetControl
import Testing

@Suite("Recordings")
struct RecordingTests {
    private static let header = #"{"recording":{"version":1,"freshet":"0.1.0","since":1000,"until":2000}}"#

    private func read(_ lines: String...) throws(RecordingError) -> Recording {
        try RecordingReader.read(Array(lines.joined(separator: "\n").utf8), file: "day.freshet")
    }

    private func message(_ bytes: [UInt8]) -> String {
        do throws(RecordingError) {
            _ = try RecordingReader.read(bytes, file: "day.freshet")
            return "no error"
        } catch {
            return error.description
        }
    }

    private func message(_ lines: String...) -> String { message(Array(lines.joined(separator: "\n").utf8)) }

    @Test("a recording that is written and read again is the same")
    func roundTrip() throws {
        var recording = Recording(header: .init(since: 1000, until: 2000))
        recording.pipelines = [
            .init(
                name: "news", source: "https://a.example", signals: ["network"], everyUSec: 5, lastCheck: 900,
                generation: 3)
        ]
        recording.sources = [.init(name: "network", fact: "reachable via \"é\"", unavailable: nil)]
        recording.gaps = [.init(from: 1100, to: 1200)]
        var run = RunStatus(
            number: 4, started: 1300, causes: [CauseStatus(signal: "network", first: 1290, last: 1290)],
            durationUSec: 50, outcome: .failed)
        run.failureKind = "transient"
        run.requests = 2
        recording.events = [
            .signal("network", number: 7, detail: "via wan0", at: 1290), .runEnded(run, of: "news", at: 1350),
            .fact("network", "not reachable: no route", at: 1400),
        ]
        let text = recording.text
        #expect(text.hasPrefix(#"{"recording":{"#) && text.hasSuffix("\n"))
        #expect(try read(text) == recording)
    }

    @Test("events are sorted by their times")
    func sorted() throws {
        func fact(_ at: Int) -> String { #"{"event":{"at":\#(at),"kind":"fact","signal":"network","detail":"x"}}"# }
        let events = try read(Self.header, fact(1500), fact(1400), fact(900)).events
        #expect(events.map(\.at) == [900, 1400, 1500])
    }

    @Test("a recording has no content: no reasons of failures, no details of causes, no generations")
    func noContent() throws {
        var run = RunStatus(
            number: 1, started: 5, causes: [CauseStatus(signal: "file /a", first: 1, last: 1, detail: "by anna")],
            outcome: .failed, failure: "quotes content")
        run.failureKind = "content"
        let generation = GenerationStatus(number: 1, size: 1, digest: "d", committedAt: 1, path: "/p")
        let recorded = try #require(ControlEvent.runEnded(run, of: "a", generation: generation, at: 6).recorded)
        #expect(recorded.generation == nil && recorded.run?.failure == nil && recorded.run?.failureKind == "content")
        #expect(recorded.run?.causes.first?.detail == nil)
        let wait = ControlEvent.state(.waiting, of: "a", waitingFor: .filesystem, detail: "/home/anna", at: 1)
        #expect(wait.recorded?.detail == nil)
        #expect(ControlEvent.runStarted(run, of: "a", at: 1).recorded == nil)
    }

    @Test(
        "an error names the file and the line",
        arguments: [
            ("{}", "2: a line has to be an object with one member"),
            (#"{"gap":{"from":1}}"#, "2: a member is missing, or its value has a wrong type"),
            (#"{"gap":{"from":5,"to":5}}"#, "2: 'from' has to be before 'to'"),
            (#"{"gap":{"from":-1,"to":5}}"#, "2: 'from' is out of range"),
            (#"{"what":1}"#, "2: unknown line 'what'; a line has a pipeline, a source, a gap or an event"),
            ("[1]", "2: this is not a JSON object (byte 1)"), (#"{"gap":{"#, "2: this is not a JSON object (byte 9)"),
            ("", "2: this is not a JSON object (byte 1)"),
            (#"{"pipeline":{"name":"a/b","source":"","signals":[]}}"#, "2: 'a/b' is not the name of a pipeline"),
            (
                "{\"pipeline\":{\"name\":\"a\u{202E}\u{61C}\u{9B}b\",\"source\":\"\",\"signals\":[]}}",
                "2: 'a???b' is not the name of a pipeline"
            ),
            (
                #"{"event":{"at":2001,"kind":"fact","signal":"a","detail":"b"}}"#,
                "2: the event is later than the end of the recording"
            ),
            (
                #"{"event":{"at":9223372036854775807,"kind":"fact","signal":"a","detail":"b"}}"#,
                "2: 'at' is out of range"
            ),
            (
                #"{"event":{"at":5,"kind":"runEnded","pipeline":"a","run":{"number":1,"started":5,"causes":[],"durationUSec":-1}}}"#,
                "2: 'durationUSec' has to be at least 0 and at most 31 days"
            ),
        ])
    func errors(line: String, expected: String) {
        #expect(message(Self.header, line, Self.header) == "day.freshet:\(expected)")
    }

    @Test("a file that is not a recording, or one of another version, is an error")
    func noRecording() {
        let hint = "this is not a recording: the first line has to be {\"recording\":{\"version\":1,…}}"
        #expect(message("") == "day.freshet: the file is empty; 'freshetctl record' writes recordings")
        #expect(message(#"{"event":{}}"#) == "day.freshet:1: \(hint)")
        #expect(
            message(#"{"recording":{"version":2,"freshet":"9","since":1,"until":2}}"#)
                == "day.freshet:1: the recording has version 2, and this program reads version 1")
        #expect(
            message(#"{"recording":{"version":1,"freshet":"9","since":2,"until":1}}"#).contains("'since' has to be"))
        #expect(
            message(#"{"recording":{"version":1,"freshet":"9","since":1,"until":4000000000000}}"#).contains("31 days"))
    }

    @Test("lines and texts are bounded")
    func limits() {
        let long = #"{"source":{"name":""# + String(repeating: "a", count: 70_000) + #"","fact":""}}"#
        #expect(message(Self.header, long).hasPrefix("day.freshet:2: the line has 70"))
        let name = #"{"source":{"name":""# + String(repeating: "a", count: 9_000) + #"","fact":""}}"#
        #expect(message(Self.header, name) == "day.freshet:2: a text is longer than 8192 bytes")
        let marks = #"{"source":{"name":"a"# + String(repeating: "\u{301}", count: 31) + #"","fact":""}}"#
        #expect(message(Self.header, marks) == "day.freshet:2: a text has more than 30 combining characters in a row")
        let many = [UInt8](repeating: UInt8(ascii: "\n"), count: 10)
        #expect(message(Array(Self.header.utf8) + many) == "day.freshet:2: this is not a JSON object (byte 1)")
    }
}
