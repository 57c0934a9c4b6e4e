import ControlTestSupport
import FreshetControl
import TestSupport
import Testing

@testable import FreshetCommands

@Suite(.serialized, .hangLimit) struct PictureVerbTests {
    private static func service() -> ScriptedService {
        let service = ScriptedService([])
        service.change { script in
            for status in Scenario.statuses { script.pipelines[status.name] = status }
            for description in Scenario.descriptions { script.descriptions[description.name] = description }
        }
        for event in Scenario.events { service.events.publish(event) }
        return service
    }

    private func output(_ line: String) async throws -> (CommandStatus, String, String) {
        let transcript = Transcript()
        let status = Status()
        try await withControlServer(Self.service()) { path in
            // `~` stands for a space within a word.
            let words = line.split(separator: " ").map { String($0.replacing("~", with: " ")) }
            let context = transcript.context(environment: ["FRESHET_SOCKET": path], columns: 80)
            status.value = Freshetctl.run(words, context)
        }
        return (status.value, transcript.output, transcript.printError)
    }

    /// `@unchecked Sendable`: written by the thread of the command, and read after it has ended.
    private final class Status: @unchecked Sendable { var value = CommandStatus.success }

    @Test("timeline draws the events of the daemon from the requested time")
    func timeline() async throws {
        let (status, text, printError) = try await output("timeline --since -70min --no-legend")
        #expect(status == .success && printError.isEmpty)
        #expect(text.contains("network") && text.contains("catalogue"))
        let (_, late, _) = try await output("timeline --since 2~minutes~ago --no-legend")
        #expect(late.contains("no signal fired") && !late.contains("catalogue"))
        let (_, one, _) = try await output("timeline --since -70min homepage --no-legend")
        #expect(one.contains("homepage") && !one.contains("catalogue"))
    }

    @Test("timeline --json prints the reply of the interface")
    func json() async throws {
        for line in ["timeline --since -70min --json", "timeline --since -70min --format json", "marbles flags --json"]
        {
            let (status, text, _) = try await output(line)
            #expect(status == .success)
            #expect(text.hasPrefix("{\"completeSince\":") && text.contains("\"kind\":\"runEnded\""))
        }
    }

    @Test("record writes a recording that the reader accepts, to standard output or to a file")
    func record() async throws {
        let (status, text, printError) = try await output("record --since -70min")
        #expect(status == .success)
        let recording = try RecordingReader.read(Array(text.utf8), file: "-")
        #expect(recording.pipelines.map(\.name) == Scenario.descriptions.map(\.name).sorted())
        let ended = recording.events.filter { $0.kind == .runEnded }
        #expect(!ended.isEmpty && ended.allSatisfy { $0.run?.failure == nil })
        #expect(recording.events.contains { $0.kind == .signal })
        #expect(printError.hasPrefix("recorded ") && printError.contains("\(ended.count) runs"))

        let directory = try TemporaryDirectory()
        let (stored, silent, _) = try await output("record --since -70min -q -o \(directory.path)/day")
        #expect(stored == .success && silent.isEmpty)
        let bytes = try #require(try EditedFile.content(of: directory.path + "/day"))
        #expect(String(decoding: bytes, as: UTF8.self) == text)
        let (refused, _, reason) = try await output("record -o \(directory.path)/none/day")
        #expect(refused == .failure && reason.contains("cannot make a file in '\(directory.path)/none'"))
        let (_, _, harmful) = try await output("record -o \(directory.path)/none\u{1b}[2J/day")
        #expect(harmful.contains(#"none\u{1b}[2J"#) && !harmful.contains("\u{1b}"))
        #expect(try await output("record --since -70min -q -o -").1 == text)
        #expect(try await output("record --since -40d").0 == .usage)
    }

    @Test("marbles explains the runs")
    func marbles() async throws {
        let (status, text, _) = try await output("marbles flags --since -30min")
        #expect(status == .success && text.contains("flags: 17 signals, 4 runs"))
        #expect(text.contains("{b-n}"))
        let (svgStatus, svg, _) = try await output("marbles flags --format svg")
        #expect(svgStatus == .success && svg.hasPrefix("<?xml"))
    }

    @Test("graph has four formats, and refuses others")
    func graph() async throws {
        for (format, begin) in [
            ("text", "start"), ("dot", "digraph"), ("svg", "<?xml"), ("mermaid", "flowchart LR"),
        ] {
            let (status, text, _) = try await output("graph --format \(format)")
            #expect(status == .success && text.hasPrefix(begin), "\(format)")
        }
        let (_, one, _) = try await output("graph flags")
        #expect(one.contains("flags.json") && !one.contains("catalogue"))
        let (refused, _, _) = try await output("graph --format png")
        #expect(refused == .usage)
    }

    @Test(
        "an invalid time, or a beginning after the end, is a usage error",
        arguments: [
            ("timeline --since soon", "'soon' is not a time; examples are -1h"),
            ("timeline --since now --until -1h", "is not before --until"),
        ])
    func wrongTimes(line: String, expected: String) async throws {
        let (status, text, printError) = try await output(line)
        #expect(status == .usage && text.isEmpty && printError.contains(expected), "\(printError)")
    }

    @Test("a pattern without a match is named")
    func nothingFits() async throws {
        let (status, text, printError) = try await output("graph zz* yy*")
        #expect(status == .success && text.isEmpty && printError == "There is no pipeline 'zz*' or 'yy*'.\n")
        let (failure, _, reason) = try await output("marbles zz*")
        #expect(failure == .failure && reason.contains("there is no pipeline 'zz*'"), "\(reason)")
    }

    @Test("an unknown pipeline is an error with a suggestion")
    func unknown() async throws {
        let (status, _, printError) = try await output("marbles flag")
        #expect(status == .failure && printError.contains("did you mean 'flags'?"))
    }
}
