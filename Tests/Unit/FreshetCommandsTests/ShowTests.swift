import ControlTestSupport
import FreshetControl
import TestSupport
import Testing

@testable import FreshetCommands

@Suite(.serialized, .hangLimit) struct ShowTests {
    private func shown(_ line: String, _ service: ScriptedService = ScriptedService()) async throws -> String {
        let transcript = Transcript()
        try await withControlServer(service, rights: ownRights) { path in
            #expect(freshetctl(line, transcript, socket: path) == .success, "\(transcript.printError)")
        }
        return transcript.output
    }

    @Test("show prints all properties of a pipeline that have a value, by name")
    func all() async throws {
        #expect(
            try await shown("show jwks") == """
                generation.committedAt=1000
                generation.digest=ab
                generation.number=3
                generation.path=/current/jwks.json
                generation.size=1229
                name=jwks
                needsNetwork=false
                source=https://example.com/jwks
                state=loaded

                """)
    }

    @Test("show -p prints the chosen properties in the order of the options; a missing value is empty")
    func chosen() async throws {
        #expect(
            try await shown("show jwks -p state,lastCheck -p generation.size")
                == "state=loaded\nlastCheck=\ngeneration.size=1229\n")
        #expect(try await shown("show jwks --property generation --value") == "1000\nab\n3\n/current/jwks.json\n1229\n")
    }

    @Test("show prints a block for each pipeline, and without a name the daemon")
    func several() async throws {
        #expect(try await shown("show catalogue jwks -p name") == "name=catalogue\n\nname=jwks\n")
        #expect(try await shown("show -p version,pid") == "version=1.0\npid=42\n")
    }

    @Test("a value stays on one line, and a list is shown by its count")
    func values() async throws {
        let service = ScriptedService(["jwks"])
        service.change { script in
            script.pipelines["jwks"]?.description = "two\nlines"
            script.pipelines["jwks"]?.lastCauses = [CauseStatus(signal: "start", first: 1, last: 2)]
        }
        #expect(
            try await shown("show jwks -p description,lastCauses", service)
                == "description=two\\u{a}lines\nlastCauses.0.count=1\nlastCauses.0.first=1\nlastCauses.0.last=2\n"
                + "lastCauses.0.signal=start\n")
    }

    @Test("an unknown pipeline is a failure with a suggestion")
    func unknown() async throws {
        let transcript = Transcript()
        try await withControlServer(ScriptedService(), rights: ownRights) { path in
            #expect(freshetctl("show jwk", transcript, socket: path) == .failure)
        }
        #expect(transcript.output == "")
        #expect(transcript.printError.contains("did you mean 'jwks'?"), "\(transcript.printError)")
    }
}
