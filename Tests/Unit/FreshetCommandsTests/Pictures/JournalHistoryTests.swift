import FreshetControl
import Testing

@testable import FreshetCommands

@Suite struct JournalHistoryTests {
    private func line(_ message: JournalLine.Message, at: Int64, _ fields: [String: String] = [:]) -> String {
        let all = ["__REALTIME_TIMESTAMP": "\(at)", "MESSAGE_ID": message.rawValue]
            .merging(fields.map { ("FRESHET_" + $0, $1) }) { $1 }
        return "{" + all.map { "\"\($0)\":\"\($1)\"" }.joined(separator: ",") + "}\n"
    }

    private func history(_ lines: [String], names: [String]? = nil) -> JournalHistory {
        JournalHistory(lines: lines.joined(), .init(since: 0, until: 1_000_000_000), names)
    }

    @Test("the messages of the journal are those of docs/journal.md")
    func messages() throws {
        let root = #filePath.split(separator: "/").dropLast(5).map { "/" + $0 }.joined()
        let document = try EditedFile.content(of: root + "/docs/journal.md").map { String(decoding: $0, as: UTF8.self) }
        let known = try #require(document)
        for message in JournalLine.Message.allCases { #expect(known.contains("`\(message.rawValue)`"), "\(message)") }
        let fields = JournalLine.fields.filter { $0.hasPrefix("FRESHET_") && $0 != "FRESHET_MESSAGE" }
        for field in fields { #expect(known.contains("`\(field)`"), "\(field)") }
    }

    @Test("a line of a run has its beginning, its causes and its outcome")
    func run() {
        let history = history([
            line(
                .changed, at: 90_000_000,
                [
                    "PIPELINE": "a", "RUN": "7", "OUTCOME": "changed", "GENERATION": "3", "DURATION": "3.2 s",
                    "CAUSES": "network (2), timer",
                ])
        ])
        let run = history.events.first?.run
        #expect(history.events.count == 1 && history.events.first?.kind == .runEnded)
        #expect(run?.started == 86_800_000 && run?.durationUSec == 3_200_000 && run?.generation == 3)
        #expect(run?.causes.map(\.signal) == ["network", "timer"] && run?.causes.map(\.count) == [2, 1])
    }

    @Test("events before the first of the most lines are unknown")
    func cut() {
        let fields = ["PIPELINE": "a", "OUTCOME": "changed", "DURATION": "1 ms"]
        let lines = [
            line(.changed, at: 7_000_000, fields.merging(["RUN": "7"]) { $1 }),
            line(.changed, at: 8_000_000, fields.merging(["RUN": "8"]) { $1 }),
        ].joined()
        func unseen(_ most: Int) -> [RecentHistory.TimeRange] {
            JournalHistory(lines: lines, .init(since: 1_000_000, until: 1_000_000_000), nil, most: most)
                .unseen(before: 900_000_000, until: nil)
        }
        #expect(unseen(2) == [RecentHistory.TimeRange(from: 1_000_000, to: 7_000_000)])
        #expect(unseen(3) == [])
    }

    @Test("a run with two lines is one run")
    func twice() {
        let fields = ["PIPELINE": "a", "RUN": "7", "OUTCOME": "changed", "DURATION": "1 ms"]
        #expect(
            history([line(.changed, at: 1_000_000, fields), line(.branchesFailed, at: 1_000_100, fields)]).events.count
                == 1)
    }

    @Test("a lost network is a band, and its return is a firing")
    func network() {
        let history = history([
            line(
                .network, at: 10_000_000,
                ["MESSAGE": "the network is not reachable", "PATH": "no carrier", "TARGET": "elsewhere"]),
            line(
                .network, at: 20_000_000,
                ["MESSAGE": "the network is reachable", "PATH": "via 192.0.2.1", "TARGET": "elsewhere"]),
        ])
        let timeline = Timeline(
            RecentHistory(events: history.events, since: 0, until: 30_000_000), [], isChosen: false)
        #expect(timeline.offline == [.init(from: 10_000_000, to: 20_000_000)])
        #expect(timeline.sources.map(\.firings.count) == [1])
    }

    @Test("at level debug, an occurrence with its own line is counted once")
    func debug() {
        let history = history([
            line(.woke, at: 10_000_000, ["SLEPT": "1min 0s", "DETAIL": "slept 60.0 s"]),
            line(.fired, at: 10_000_500, ["SIGNAL": "resume", "NUMBER": "1"]),
        ])
        #expect(history.events.count { $0.kind == .signal } == 1)
        #expect(history.notes.isEmpty)
    }

    @Test("at level info, a note lists the missing events")
    func info() {
        #expect(
            history([line(.network, at: 1, ["MESSAGE": "the network is not reachable"])]).notes.first?
                .contains("level info") == true)
    }

    @Test("the time between two daemons is unknown")
    func unseen() {
        let history = history([
            line(.stopped, at: 20_000_000), line(.ready, at: 30_000_000), line(.stopped, at: 50_000_000),
        ])
        #expect(
            history.unseen(before: 60_000_000, until: 60_000_000) == [
                .init(from: 20_000_000, to: 30_000_000), .init(from: 50_000_000, to: 60_000_000),
            ])
    }

    @Test(
        "with an unreadable journal, the time is unknown, not idle",
        arguments: [
            ("Hint: You are currently not seeing messages from other users and the system.\n", "Permission denied"),
            ("Failed to open files: Bad message\n", "The journal could not be read: Failed to open files: Bad message"),
        ])
    func unread(printError: String, note: String) {
        let history = JournalHistory(since: 10_000_000, unread: printError)
        #expect(history.unseen(before: 50_000_000, until: nil) == [.init(from: 10_000_000, to: 50_000_000)])
        #expect(history.unseen(before: 10_000_000, until: nil) == [])
        #expect(history.notes.count == 1 && history.notes.first?.hasPrefix(note) == true)
    }

    @Test("names and patterns select pipelines, and other lines are ignored")
    func others() {
        let fields = ["RUN": "1", "OUTCOME": "failed"]
        let lines = [
            line(.failed, at: 1, fields.merging(["PIPELINE": "feed-a"]) { $1 }),
            line(.failed, at: 2, fields.merging(["PIPELINE": "jwks"]) { $1 }), "no JSON\n", "{\"MESSAGE_ID\":[1,2]}\n",
            #"{"__REALTIME_TIMESTAMP":"3","MESSAGE_ID":"66f71c85b7f24bbaaa0c0a4d5d7ec04a","FRESHET_ERROR":[27,91]}"#
                + "\n",
        ]
        #expect(history(lines, names: ["feed-*"]).events.map(\.pipeline) == ["feed-a"])
    }

    @Test(
        "durations of the journal are parsed",
        arguments: [
            ("284 µs", 284), ("15 ms", 15_000), ("3.2 s", 3_200_000), ("14min 59s", 899_000_000),
            ("6h 29min", 23_340_000_000),
            ("3d 1h", 262_800_000_000),
        ] as [(String, Int64)])
    func durations(text: String, expected: Int64) {
        #expect(JournalLine.duration(text) == expected)
    }

    @Test(
        "an invalid duration is rejected by the parser of the journal",
        arguments: ["soon", "3 lightyears", "-1 s", "1e9 s"])
    func noDurations(text: String) {
        #expect(JournalLine.duration(text) == nil)
    }
}
