import TestSupport
import Testing

@testable import FreshetCommands

/// Runs real programs.
@Suite(.hangLimit) struct ProgramRunnerTests {
    @Test("the output of both streams is collected, also more than a pipe holds")
    func collected() {
        let script = "i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done; echo no >&2; exit 3"
        guard
            case .ended(let status, let output, let printError) = ProgramRunner.run(
                "/bin/sh", ["-c", script], .collected)
        else {
            Issue.record("it did not run")
            return
        }
        #expect(status == 3 && output.utf8.count == 220_000 && printError == "no\n")
    }

    @Test("a program that a signal ends has the status of a shell")
    func killed() {
        #expect(ProgramRunner.run("/bin/sh", ["-c", "kill -TERM $$"], .collected) == .ended(status: 143))
        #expect(ProgramRunner.run("/bin/sh", ["-c", "exit 7"], .shared) == .ended(status: 7))
    }

    @Test("a program that cannot be run is reported with the reason")
    func missing() {
        #expect(ProgramRunner.run("/nonexistent/editor", [], .shared) == .failed("No such file or directory"))
        #expect(ProgramRunner.run("/etc/passwd", [], .collected) == .failed("Permission denied"))
    }

    @Test("a child has an empty input and no blocked signals")
    func streams() {
        #expect(ProgramRunner.run("/bin/cat", [], .collected) == .ended(status: 0))
        #expect(
            ProgramRunner.run("/bin/grep", ["SigBlk", "/proc/self/status"], .collected)
                == .ended(status: 0, output: "SigBlk:\t0000000000000000\n"))
    }

    @Test("a program is found in PATH as by a shell")
    func path() {
        let transcript = Transcript()
        let context = transcript.context(
            environment: ["PATH": "/a:/b"], executable: ["/b/vi", "/usr/bin/nano", "/opt/code"])
        #expect(context.program("vi") == "/b/vi")
        #expect(context.program("nano") == nil)
        #expect(context.program("/opt/code") == "/opt/code")
        #expect(context.program("/opt/other") == nil)
    }
}
