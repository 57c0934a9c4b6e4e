import ControlTestSupport
import FreshetControl
import Testing

@testable import FreshetCommands

@Suite("get --file")
struct FileSetTests {
    private static let old = #"{"issuer.txt":"old\n","keys.json":[1, {"a":"b"}],"none":null}"# + "\n"

    /// A pipeline with a current copy of several files, an older generation, and rejected content.
    private func service(
        _ content: String, isSet: Bool = true
    ) -> ScriptedService {
        let service = ScriptedService(["a"])
        service.change { script in
            var generation = GenerationStatus(
                number: 3, size: Int64(content.utf8.count), digest: "ab", committedAt: 1, path: "/current/a.stamp")
            if isSet { generation.directory = "/current/a" }
            script.pipelines["a"]?.generation = generation
            script.contents = [2: Array(Self.old.utf8), 3: Array(content.utf8)]
            script.candidate = Array(#"{"issuer.txt":"refused"}"#.utf8)
        }
        return service
    }

    private func check(
        _ line: String, _ content: String = #"{"issuer.txt":"n\u00e9w\n","keys.json":[2]}"#, isSet: Bool = true,
        status: CommandStatus = .success, output: String = "", printError: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let service = service(content, isSet: isSet)
        try await expect(
            line, of: service, status: status, output: output, printError: printError, sourceLocation: sourceLocation)
    }

    @Test("get --file prints a file as it is published: text unchanged, any other value as JSON with a newline")
    func content() async throws {
        try await check("get a --file issuer.txt", output: "n\u{e9}w\n")
        try await check("get a --file keys.json", output: "[2]\n")
        try await check("get a --generation 2 --file issuer.txt", output: "old\n")
        try await check("get a --generation 2 --file keys.json", output: #"[1, {"a":"b"}]"# + "\n")
        try await check("get a --generation 2 --file none", output: "null\n")
        try await check("get a --candidate --file issuer.txt", output: "refused")
        // Without --file, the whole content.
        try await check("get a --generation 2", output: Self.old)
    }

    @Test("get --file of an unknown file lists the files and suggests a similar name")
    func unknown() async throws {
        try await check(
            "get a --file key.json", status: .failure,
            printError:
                "freshetctl: 'a' has no file 'key.json'; did you mean 'keys.json'? Its files are issuer.txt, keys.json\n"
        )
        try await check(
            "get a --generation 2 --file quite-another", status: .failure,
            printError: "freshetctl: 'a' has no file 'quite-another'; its files are issuer.txt, keys.json, none\n")
    }

    @Test("get --file is an error for a pipeline with a single file")
    func oneFile() async throws {
        for line in ["get a --file x", "get a --generation 2 --file issuer.txt", "get a --candidate --file issuer.txt"]
        {
            try await check(
                line, #"{"x":1}"#, isSet: false, status: .failure,
                printError: "freshetctl: 'a' is one file; omit --file\n")
        }
        try await check(
            "get a --file x", "[1]", status: .failure, printError: "freshetctl: 'a' is one file; omit --file\n")
    }
}
