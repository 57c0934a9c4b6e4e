import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Checksums, signatures and programs in a pipeline's file")
struct ProofTests {
    private static let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
    private static let source = "{url: https://a.example/pool/x.gz}"

    private func load(_ check: String, source: String = ProofTests.source, more: String = "") -> Configuration {
        FreshetConfigurationTests.load(pipeline: "source: \(source)\ncache: {file: a}\ncheck: \(check)\n\(more)")
    }

    private func rules(_ check: String) throws -> CheckRules {
        let configuration = load(check)
        #expect(configuration.diagnostics == [])
        return try #require(configuration.pipelines.first).check
    }

    private func error(_ check: String, source: String = ProofTests.source, more: String = "") -> String? {
        let errors = texts(load(check, source: source, more: more).diagnostics)
        #expect(errors.count == 1, "\(errors)")
        return errors.first
    }

    @Test("a list of checksums is a URL, or a URL with the file's name in the list")
    func sums() throws {
        let list = HTTPSource(url: "https://b.example/SUMS", host: "b.example")
        #expect(try rules("{sha256: https://b.example/SUMS}").sha256 == ChecksumRule.list(list))
        #expect(
            try rules("{sha256: {url: https://b.example/SUMS, name: ./pool/x.gz}}").sha256
                == ChecksumRule.list(list, name: "pool/x.gz"))
        #expect(try rules("{}").sha256 == nil)
    }

    @Test("a checksum itself is 64 hexadecimal digits, in any case")
    func digest() throws {
        let digits = String(repeating: "0aB", count: 21) + "f"
        #expect(try rules("{sha256: \(digits)}").sha256 == .digest(digits.lowercased()))
        for wrong in [String(digits.dropLast()), digits + "0", String(digits.dropLast()) + "g", "SUMS"] {
            #expect(error("{sha256: '\(wrong)'}")?.contains("64 hexadecimal digits") == true, "\(wrong)")
        }
    }

    @Test("a signature has a key or a key file, and a derived or configured URL")
    func signatures() throws {
        let key = try MinisignKey(Self.key)
        #expect(try rules("{minisign: \(Self.key)}").minisign == SignatureRule(.key(key)))
        #expect(try rules("{minisign: {key: \(Self.key)}}").minisign == SignatureRule(.key(key)))
        #expect(
            try rules("{minisign: {key-file: /etc/k.pub, url: https://b.example/s}}").minisign
                == SignatureRule(
                    .file("/etc/k.pub"), signature: HTTPSource(url: "https://b.example/s", host: "b.example")))
    }

    @Test("a program is a command with literal arguments and a time limit")
    func programs() throws {
        #expect(
            try rules("{exec: [/usr/lib/check, '{id}'], timeout: 2min}").exec
                == InspectionRule(["/usr/lib/check", "{id}"], timeout: .seconds(120)))
        #expect(try rules("{exec: [/x]}").exec?.timeout == .seconds(30))
        #expect(try !rules("{exec: [/x]}").readsContent)
    }

    @Test("a changed check changes the binding, so the next request is not conditional")
    func binding() throws {
        let checks = [
            "{}", "{sha256: https://b/c}", "{sha256: https://b/d}", "{sha256: {url: https://b/d, name: e}}",
            "{minisign: \(Self.key)}", "{minisign: {key: \(Self.key), url: https://b/c}}",
            "{minisign: {key-file: /k}}", "{exec: [/x]}", "{exec: [/x, y]}",
        ]
        let bindings = try checks.map { try #require(load($0).pipelines.first).validatorBinding() }
        #expect(Set(bindings).count == checks.count)
        // The time limit of a program does not change its result.
        let slow = try #require(load("{exec: [/x], timeout: 1h}").pipelines.first).validatorBinding()
        #expect(slow == bindings[7])
    }

    @Test(
        "an error has a location and a remedy",
        arguments: [
            (
                "{sha256: SHA256SUMS}",
                "3:17: error: 'sha256' has to be a SHA-256 checksum of 64 hexadecimal digits, or the URL of a list of "
                    + "checksums; write the digits that 'sha256sum FILE' prints, or begin the URL with https://"
            ),
            (
                "{sha256: {name: x}}",
                "3:17: error: 'sha256' has no 'url'; add the URL of the list of checksums: url: https://…/SHA256SUMS"
            ),
            (
                "{sha256: {url: https://b/c, name: ''}}",
                "3:42: error: 'name' is empty; write the file's name as in the list"
            ),
            (
                "{sha256: 'https://b/{version}'}",
                "3:17: error: 'sha256' has the unknown placeholder '{version}'; declare 'version' below "
                    + "'parameters'; write a literal brace as %7B or %7D"
            ),
            (
                "{minisign: RWQf}",
                "3:19: error: 'minisign' is not a public key of minisign, whose line has 56 characters and begins with "
                    + "RW; write the second line of the publisher's .pub file"
            ),
            (
                "{minisign: {url: https://b/c}}",
                "3:19: error: 'minisign' has no 'key'; add the publisher's public key, the line that begins with RW, "
                    + "or the path of its file as 'key-file'"
            ),
            (
                "{minisign: {key: \(key), key-file: /k}}",
                "3:83: error: 'key' and 'key-file' exclude each other; keep one"
            ),
            (
                "{exec: bin/x}",
                "3:15: error: 'exec' has to be a list, not text; write [/usr/bin/program, argument]; Freshet uses no "
                    + "shell to split a line into words"
            ),
            (
                "{timeout: 3s}",
                "3:9: error: 'timeout' needs 'exec'; leave it out; 'refresh.deadline' limits the time of a run"
            ),
            ("{exec: [/x], timeout: 2h}", "3:30: error: 'timeout' has to be at most 1h"),
        ])
    func errors(_ check: String, _ text: String) throws {
        let found = try #require(error(check))
        #expect(found.hasPrefix("jwks.yaml:\(text)"), "\(found)")
    }

    @Test(
        "a source with several requests or without a URL has no checksum and no signature",
        arguments: [
            ("{file: /a}", "the source is 'file'"), ("{exec: [/a]}", "the source is 'exec'"),
            ("{url: https://a/b, pages: {next: link}}", "'pages' makes several requests"),
            ("{url: https://a/b, each: {as: x, url: 'https://a/{x.id}'}}", "'each' makes several requests"),
        ])
    func shapes(_ source: String, _ obstacle: String) throws {
        for check in ["{sha256: https://b/c}", "{minisign: \(Self.key)}"] {
            let key = check.dropFirst().prefix { $0 != ":" }
            let found = try #require(error(check, source: source))
            #expect(
                found
                    == "jwks.yaml:3:9: error: '\(key)' needs a single request to a 'url', but \(obstacle); "
                    + "leave it out; your own program can check any copy: exec: [/usr/lib/program]")
        }
        #expect(load("{exec: [/x]}", source: source).diagnostics == [])
    }

    @Test("a URL without a file name needs the URL of the signature")
    func noFileName() throws {
        let bare = "{url: https://a.example/}"
        let found = try #require(error("{minisign: \(Self.key)}", source: bare))
        #expect(
            found
                == "jwks.yaml:3:9: error: the URL of the source does not end in a file name, to which '.minisig' would "
                + "be added; add the URL of the signature: minisign: {key: RW…, url: https://…}")
        #expect(load("{minisign: {key: \(Self.key), url: https://b/c}}", source: bare).diagnostics == [])
        #expect(load("{sha256: https://b/c}", source: bare).diagnostics == [])
    }

    @Test("the URL of a checksum may have placeholders, and an invalid default is an error")
    func places() throws {
        let parameters = "parameters: {version: {default: '1'}}\n"
        let configuration = load("{sha256: 'https://b/{version}/SUMS'}", more: parameters)
        #expect(configuration.diagnostics == [])
        let definition = try #require(configuration.pipelines.first)
        #expect(
            definition.validatorBinding(with: ParameterValues(["version": "1"]))
                != definition.validatorBinding(with: ParameterValues(["version": "2"])))
        #expect(definition.error(with: ParameterValues(["version": ".."]))?.parameter == "version")
        #expect(
            try #require(error("{sha256: 'https://b/{version}/SUMS'}", more: "parameters: {version: {default: ''}}\n"))
                .contains("the default of 'version' would make a segment of the URL's path empty"))
    }

    @Test("a secret in the URL of a checksum is redacted, and a remote URL needs the network")
    func secrets() throws {
        let definition = try #require(
            load("{sha256: 'https://b/SUMS?token=s3cret'}", source: "{url: http://127.0.0.1/x}").pipelines.first)
        #expect(definition.plainSecrets == ["s3cret"])
        #expect(definition.needsNetwork)
        let local = try #require(
            load("{sha256: 'http://127.0.0.1/SUMS'}", source: "{url: http://127.0.0.1/x}").pipelines.first)
        #expect(!local.needsNetwork)
    }
}
