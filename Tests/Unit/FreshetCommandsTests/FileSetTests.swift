import ControlTestSupport
import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetCommands

@Suite("One of several files: get --file")
struct FileSetTests {
    private static let old = #"{"issuer.txt":"old\n","keys.json":[1, {"a":"b"}],"none":null}"# + "\n"

    /// With a current copy of several files in a file, an older one, and something refused.
    private func service(
        _ content: String, in directory: TemporaryDirectory, isSet: Bool = true
    ) throws -> ScriptedService {
        let path = try directory.write(content, to: "a")
        let service = ScriptedService(["a"])
        service.change { script in
            var generation = GenerationStatus(
                number: 3, size: Int64(content.utf8.count), digest: "ab", committedAt: 1, path: path)
            if isSet { generation.directory = "/current/a" }
            script.pipelines["a"]?.generation = generation
            script.contents = [2: Array(Self.old.utf8)]
            script.candidate = Array(#"{"issuer.txt":"refused"}"#.utf8)
        }
        return service
    }

    private func check(
        _ line: String, _ content: String = #"{"issuer.txt":"n\u00e9w\n","keys.json":[2]}"#, isSet: Bool = true,
        status: CommandStatus = .success, output: String = "", talk: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let directory = try TemporaryDirectory()
        let service = try service(content, in: directory, isSet: isSet)
        try await expect(line, of: service, status: status, output: output, talk: talk, sourceLocation: sourceLocation)
    }

    @Test("is printed as it stands in its directory: a text as it is, anything else as JSON with a newline")
    func content() async throws {
        try await check("get a --file issuer.txt", output: "n\u{e9}w\n")
        try await check("get a --file keys.json", output: "[2]\n")
        try await check("get a --generation 2 --file issuer.txt", output: "old\n")
        try await check("get a --generation 2 --file keys.json", output: #"[1, {"a":"b"}]"# + "\n")
        try await check("get a --generation 2 --file none", output: "null\n")
        try await check("get a --candidate --file issuer.txt", output: "refused")
        // Without it, all of it.
        try await check("get a --generation 2", output: Self.old)
    }

    @Test("that is not there is answered with those that are, and a similar one")
    func unknown() async throws {
        try await check(
            "get a --file key.json", status: .failure,
            talk: "freshetctl: 'a' has no file 'key.json'; did you mean 'keys.json'? There are issuer.txt, keys.json.\n"
        )
        try await check(
            "get a --generation 2 --file quite-another", status: .failure,
            talk: "freshetctl: 'a' has no file 'quite-another'; there are issuer.txt, keys.json, none.\n")
    }

    @Test("of a pipeline that has one file is none")
    func oneFile() async throws {
        for line in ["get a --file x", "get a --generation 2 --file issuer.txt", "get a --candidate --file issuer.txt"]
        {
            try await check(
                line, #"{"x":1}"#, isSet: false, status: .failure,
                talk: "freshetctl: 'a' is one file; leave --file out\n")
        }
        try await check(
            "get a --file x", "[1]", status: .failure, talk: "freshetctl: 'a' is one file; leave --file out\n")
    }
}
