import ControlTestSupport
import FreshetControl
import TestSupport
import Testing

@testable import FreshetCommands

@Suite(.serialized, .hangLimit) struct FsckVerbTests {
    private func service(repaired: Bool = false) -> ScriptedService {
        let service = ScriptedService(["jwks"])
        service.change { script in
            var examined = ControlMessage.Examined()
            examined.findings = [
                ExaminationFinding(
                    kind: .contentDamaged, pipeline: "jwks", generation: 6, path: "/c/6-ab\u{1B}", repaired: repaired)
            ]
            (examined.pipelines, examined.generations, examined.bytes) = (1, 2, 58)
            script.examined[.pipeline("jwks")] = .success(examined)
        }
        return service
    }

    @Test("fsck prints each error with its remedy, and ends with 1")
    func errors() async throws {
        try await expect(
            "fsck", of: service(), status: .failure,
            output: "jwks: generation 6 is damaged: /c/6-ab\\u{1b}\n  --repair removes it.\n",
            printError: "1 pipeline, 2 generations, 58 bytes: 1 error left\n")
        try await expect("fsck --quiet", of: ScriptedService(["jwks"]))
        try await expect(
            "fsck", of: ScriptedService(["jwks"]), printError: "0 pipelines, 0 generations, 0 bytes: no errors\n")
    }

    @Test("fsck --repair ends with 0 if no error remains")
    func repair() async throws {
        try await expect(
            "fsck --repair", of: service(repaired: true),
            output: "jwks: generation 6 is damaged: /c/6-ab\\u{1b}; repaired\n",
            printError: "1 pipeline, 2 generations, 58 bytes: 1 repaired, no errors\n",
            asked: ["repair index", "repair strays", #"repair pipeline("jwks")"#])
    }

    @Test("fsck --json prints one object of the interface")
    func json() async throws {
        let finding =
            #"{"generation":6,"kind":"contentDamaged","path":"/c/6-ab\u001b","pipeline":"jwks","repaired":false}"#
        try await expect(
            "fsck --json", of: service(), status: .failure,
            output: #"{"bytes":58,"findings":[\#(finding)],"generations":2,"pipelines":1,"unnamed":0}"# + "\n")
    }

    @Test("fsck without a daemon executes freshetd, unless a socket is named")
    func noDaemon() {
        func executed(
            _ line: String, status: CommandStatus = .failure, environment: [String: String] = [:]
        ) -> [String] {
            let transcript = Transcript()
            let own = environment.merging(["XDG_RUNTIME_DIR": "/nonexistent"]) { first, _ in first }
            let context = transcript.context(environment: own, executable: ["/usr/sbin/freshetd"])
            #expect(Freshetctl.run(line.split(separator: " ").map(String.init), context) == status)
            return transcript.executed
        }
        #expect(executed("fsck") == ["/usr/sbin/freshetd", "--fsck"])
        #expect(
            executed("fsck --repair --state-dir /s --cache-dir /c --json --quiet") == [
                "/usr/sbin/freshetd", "--fsck", "--repair", "--state-dir", "/s", "--cache-dir", "/c", "--json",
                "--quiet",
            ])
        #expect(executed("fsck --socket /nonexistent/s", status: .notRunning) == [])
        #expect(executed("fsck", status: .notRunning, environment: ["FRESHET_SOCKET": "/nonexistent/s"]) == [])
        #expect(executed("fsck --socket /s --state-dir /s", status: .usage) == [])
    }
}
