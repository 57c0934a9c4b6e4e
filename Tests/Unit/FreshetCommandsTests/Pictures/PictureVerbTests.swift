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
        return (status.value, transcript.output, transcript.talk)
    }

    /// `@unchecked Sendable`: written by the thread of the command, and read after it has ended.
    private final class Status: @unchecked Sendable { var value = CommandStatus.success }

    @Test("timeline draws what the daemon remembers, from when it is asked for")
    func timeline() async throws {
        let (status, text, talk) = try await output("timeline --since -70min --no-legend")
        #expect(status == .success && talk.isEmpty)
        #expect(text.contains("network") && text.contains("catalogue"))
        let (_, late, _) = try await output("timeline --since 2~minutes~ago --no-legend")
        #expect(late.contains("none fired") && !late.contains("catalogue"))
        let (_, one, _) = try await output("timeline --since -70min homepage --no-legend")
        #expect(one.contains("homepage") && !one.contains("catalogue"))
    }

    @Test("the JSON of timeline is the interface's own reply")
    func json() async throws {
        for line in ["timeline --since -70min --json", "timeline --since -70min --format json", "marbles flags --json"]
        {
            let (status, text, _) = try await output(line)
            #expect(status == .success)
            #expect(text.hasPrefix("{\"completeSince\":") && text.contains("\"kind\":\"runEnded\""))
        }
    }

    @Test("marbles tells why there were how many runs")
    func marbles() async throws {
        let (status, text, _) = try await output("marbles flags --since -30min")
        #expect(status == .success && text.contains("flags: 17 signals made 4 runs"))
        #expect(text.contains("{b-n}"))
        let (svgStatus, svg, _) = try await output("marbles flags --format svg")
        #expect(svgStatus == .success && svg.hasPrefix("<?xml"))
    }

    @Test("graph draws in four languages, and refuses others")
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
        "a wrong time, or one after the end, is a wrong command line",
        arguments: [
            ("timeline --since soon", "'soon' is no time; times are such as -1h"),
            ("timeline --since now --until -1h", "nothing is between --since"),
        ])
    func wrongTimes(line: String, expected: String) async throws {
        let (status, text, talk) = try await output(line)
        #expect(status == .usage && text.isEmpty && talk.contains(expected), "\(talk)")
    }

    @Test("a pattern that fits no pipeline is named")
    func nothingFits() async throws {
        let (status, text, talk) = try await output("graph zz* yy*")
        #expect(status == .success && text.isEmpty && talk == "There is no pipeline 'zz*' or 'yy*'.\n")
        let (failure, _, reason) = try await output("marbles zz*")
        #expect(failure == .failure && reason.contains("there is no pipeline 'zz*'"), "\(reason)")
    }

    @Test("a pipeline that there is not is an error with a suggestion")
    func unknown() async throws {
        let (status, _, talk) = try await output("marbles flag")
        #expect(status == .failure && talk.contains("did you mean 'flags'?"))
    }
}
