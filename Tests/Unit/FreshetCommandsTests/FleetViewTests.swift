import FreshetControl
import Testing

@testable import FreshetCommands

@Suite("freshetctl fleet")
struct FleetViewTests {
    private static let overview: FleetOverview = {
        var jwks = FleetPipelineStatus(pipeline: "jwks", definition: "00ff")
        (jwks.number, jwks.digest, jwks.size, jwks.fetchedBy) = (7, "02", 2_048, "ams-3")
        jwks.checked = Transcript.now - 120_000_000
        (jwks.current, jwks.waiting, jwks.behind, jwks.failed) = (100, 898, 1, 1)
        jwks.rollOut = .init(percentage: 10, since: Transcript.now - 60_000_000, halted: false)
        jwks.members = [
            FleetMemberStatus(
                machine: "ams-7", state: .behind, copy: nil, error: nil, reported: Transcript.now - 3_600_000_000),
            FleetMemberStatus(
                machine: "fra-1", state: .hookFailed, copy: "02", error: "exited with\u{1B}[2J status 1",
                reported: Transcript.now - 30_000_000),
        ]
        var poisoned = FleetPipelineStatus(pipeline: "list", definition: "00ff")
        poisoned.rejection = "it is not signed"
        return FleetOverview(
            name: "prod", machines: 1_000, fetching: 3, versions: ["1.0": 998, "1.1": 2], pipelines: [jwks, poisoned])
    }()

    private func run(_ line: String, _ result: ChildResult? = nil) -> (CommandStatus, Transcript) {
        let transcript = Transcript()
        var context = transcript.context(executable: ["/usr/libexec/freshetd"])
        context.child = { _, arguments, _ in
            result
                ?? .ended(
                    status: 0, output: arguments == ["--fleet", "status"] ? ControlJSON.text(of: Self.overview) : "")
        }
        return (Freshetctl.run(line.split(separator: " ").map(String.init), context), transcript)
    }

    @Test("status is a table of the pipelines, and one of the members that are behind or fail")
    func status() {
        let (status, transcript) = run("fleet status")
        #expect(status == .success && transcript.printError.isEmpty)
        #expect(
            transcript.output == """
                PIPELINE NUMBER  SIZE CHECKED  BY    CURRENT BEHIND FAILED ROLL-OUT
                jwks          7 2 KiB 2min ago ams-3     100      1      1 10% since 1min ago, 898 wait
                list          -     - -        -           -      -      - rejected: it is not signed

                Fleet prod: 1000 machines (3 with role fetch), 2 pipelines, 2 versions of Freshet.

                MACHINE PIPELINE STATE      SINCE   ERROR
                ams-7   jwks     behind     1h ago
                fra-1   jwks     hook fails 30s ago exited with\\u{1b}[2J status 1

                2 copies behind or failing.

                """, "\(transcript.output)")
    }

    @Test("graph is an SVG document that names fetchers, contents and counts")
    func graph() {
        let (status, transcript) = run("fleet graph")
        #expect(status == .success && transcript.output.hasPrefix("<?xml"))
        for text in ["ams-3", "checked 2min ago", "number 7", "898 wait for the roll-out", "it is not signed"] {
            #expect(transcript.output.contains(text), "\(text)")
        }
        #expect(!transcript.output.contains("\u{1B}"))
    }

    @Test("an error of freshetd is printed, and its status passed on")
    func failures() {
        let (status, transcript) = run(
            "fleet status", .ended(status: 78, errorOutput: "freshetd: freshet.yaml has no 'fleet'\n"))
        #expect(status == .configuration && transcript.output.isEmpty)
        #expect(transcript.printError.contains("freshet.yaml has no 'fleet'"))
        let (other, old) = run("fleet status", .ended(status: 0, output: "{}"))
        #expect(other == .failure && old.printError.contains("another version"))
    }

    @Test("a pipeline that the fleet does not have is an error, also as JSON")
    func unknown() {
        for line in ["fleet status nope", "fleet status nope --json"] {
            let (status, transcript) = run(line, .ended(status: 0, output: ControlJSON.text(of: Self.overview)))
            #expect(status == .failure && transcript.output.isEmpty)
            #expect(transcript.printError.contains("no content of a pipeline 'nope'"))
        }
        let (status, transcript) = run(
            "fleet status jwks --json", .ended(status: 0, output: ControlJSON.text(of: Self.overview)))
        #expect(status == .success && transcript.output.contains("\"jwks\""))
    }

    @Test("the other actions are those of freshetd")
    func others() {
        let (_, transcript) = run("fleet halt jwks --seed /s")
        #expect(transcript.executed == ["/usr/libexec/freshetd", "--fleet", "halt", "--seed", "/s", "--", "jwks"])
    }
}
