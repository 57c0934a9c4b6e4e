import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Secrets of a pipeline")
struct SecretsTests {
    private func pipeline(
        _ url: String = "https://a.example/", _ headers: [HTTPHeader] = [], cache: CacheRules = CacheRules(file: "f")
    ) -> PipelineDefinition {
        PipelineDefinition(
            name: "p", source: .http(HTTPSource(url: url, headers: headers, host: "a.example")), cache: cache)
    }

    @Test("a copy is closed to other users if a request has a secret, unless its mode is configured")
    func mode() {
        #expect(pipeline().cacheMode == 0o644)
        #expect(pipeline("https://a.example/", [HTTPHeader("Accept", "text/plain")]).cacheMode == 0o644)
        for header in [
            HTTPHeader.bearer("token"), HTTPHeader("X-Id", credential: "id"), HTTPHeader("authorization", "Basic x"),
            HTTPHeader("Cookie", "a=b"), HTTPHeader("X-API-KEY", "a"), HTTPHeader("PRIVATE-TOKEN", "a"),
        ] {
            #expect(pipeline("https://a.example/", [header]).cacheMode == 0o640, "\(header.name)")
            #expect(
                pipeline("https://a.example/", [header], cache: CacheRules(file: "f", mode: 0o604)).cacheMode == 0o604)
        }
        #expect(
            PipelineDefinition(name: "c", source: .command(["/x"]), cache: CacheRules(file: "f")).cacheMode == 0o644)
    }

    @Test("the content of a credential's file, and where it is named")
    func needed() {
        let headers = [
            HTTPHeader("X-A", credential: "a"), HTTPHeader.bearer("b"), .basic("c"),
            HTTPHeader("X-D", credential: "d", as: .ownField),
        ]
        var definition = pipeline()
        definition.change { $0.clientCertificate = .init(certificate: "e", key: "f") }
        #expect(
            definition.credentials == [
                NeededCredential(name: "e", keys: ["source", "client-certificate"], content: .file),
                NeededCredential(name: "f", keys: ["source", "client-key"], content: .file),
            ])
        #expect(definition.cacheMode == 0o640)
        definition.change { $0.clientCertificate = .init(certificate: "e") }
        #expect(definition.credentials.map(\.name) == ["e"])
        #expect(
            pipeline("https://a.example/", headers).credentials == [
                NeededCredential(name: "a", keys: ["source", "headers", "X-A", "credential"], content: .line),
                NeededCredential(name: "b", keys: ["source", "credential"], content: .line),
                NeededCredential(name: "c", keys: ["source", "credential"], content: .userAndPassword),
                NeededCredential(name: "d", keys: ["source", "credential"], content: .line),
            ])
    }

    @Test("secrets in plain text in the configuration are found by their names")
    func plain() {
        let headers = [
            HTTPHeader("Authorization", "Bearer abcdefgh"), HTTPHeader("Accept", "application/json"), .bearer("token"),
        ]
        let secrets = pipeline("https://a.example/x?lang=en&api_key=01234567&Token=89&key", headers).plainSecrets
        #expect(secrets == ["Bearer abcdefgh", "abcdefgh", "01234567", "89"])
    }

    @Test("the binding changes with everything that decides what the copy is and who reads it, and does not reveal it")
    func binding() {
        let base = pipeline("https://a.example/?token=s3cret", [HTTPHeader("X-Key", "k3y-k3y-k3y")])
        var others: [PipelineDefinition] = [
            pipeline("https://a.example/?token=s3creu", [HTTPHeader("X-Key", "k3y-k3y-k3y")]),
            pipeline("https://a.example/?token=s3cret", [HTTPHeader("X-Key", "k3y-k3y-k3z")]),
            pipeline("https://a.example/?token=s3cret", [HTTPHeader("X-Key", credential: "k3y-k3y-k3y")]),
            pipeline("https://a.example/?token=s3cret", [HTTPHeader("X-Key", credential: "other")]),
            pipeline("https://a.example/?token=s3cret", [HTTPHeader("X-Key", credential: "other", as: .bearer)]),
            pipeline("https://a.example/?token=s3cret", [HTTPHeader("X-Key", credential: "other", as: .basic)]),
            PipelineDefinition(name: "p", source: .command(["/a", "b"]), cache: CacheRules(file: "f")),
            PipelineDefinition(name: "p", source: .file("/a"), cache: CacheRules(file: "f")),
        ]
        for change: (inout PipelineDefinition) -> Void in [
            { $0.transform = "." }, { $0.check.jq = "." }, { $0.check.minBytes = 7 }, { $0.check.types = ["a/b"] },
            { $0.cache.mode = 0o600 }, { $0.cache.group = "web" },
            { $0.change { $0.method = .post(body: "", contentType: "a/b") } },
            { $0.change { $0.method = .post(body: "{}", contentType: "a/b") } },
            { $0.change { $0.method = .post(body: "{}", contentType: "a/c") } },
            { $0.change { $0.clientCertificate = .init(certificate: "a") } },
            { $0.change { $0.clientCertificate = .init(certificate: "b") } },
            { $0.change { $0.clientCertificate = .init(certificate: "a", key: "b") } },
            { $0.change { $0.certificateAuthority = "/etc/a.pem" } },
            { $0.change { $0.unixSocket = "/run/a" } }, { $0.change { $0.unixSocket = "/run/b" } },
        ] {
            var other = base
            change(&other)
            others.append(other)
        }
        let bindings = ([base] + others).map { $0.validatorBinding() }
        #expect(Set(bindings).count == bindings.count)
        for binding in bindings {
            #expect(!binding.contains("s3cret") && binding.utf8.count <= 32 && binding.allSatisfy(\.isHexDigit))
        }
        var same = base
        same.description = "other words"
        same.cache.keep = 9
        same.cache.mode = 0o640
        #expect(same.validatorBinding() == base.validatorBinding())
    }

    @Test("the binding of a copy is the one that earlier versions stored")
    func storedBinding() {
        let source = SourceDefinition.http(HTTPSource(url: "https://a.example/x.json", host: "a.example"))
        var definition = PipelineDefinition(name: "a", source: source, cache: CacheRules(file: "a"))
        #expect(definition.validatorBinding() == "1084f9c1c9097cc09fb85f27d427c0f4")
        definition.transform = ".a"
        definition.check = CheckRules(
            jq: ".b", minBytes: 0, maxBytes: 10_000_000_000_000_000_000, types: ["application/json", "text/plain"])
        definition.cache.mode = 0o600
        definition.cache.group = "www-data"
        #expect(definition.validatorBinding() == "f1dc007e3afe90080584c926be92402c")
    }

    @Test(
        "a host is this machine by its name in any case, or by its address",
        arguments: [
            ("localhost", true), ("LOCALHOST", true), ("a.LocalHost", true), ("alocalhost", false), ("localhos", false),
            ("localhost.example", false), (".localhost", true), ("LOCALHOS\u{14}", false), ("", false), ("::1", true),
            ("::10", false), ("127.0.0.1", true), ("127.1.2.3", true), ("127.0.0.1.example", false),
            ("128.0.0.1", false),
        ])
    func local(host: String, isLocal: Bool) {
        #expect(HTTPSource(url: "http://a.example/", host: host).isLocal == isLocal)
    }

    @Test("credentials are sent encrypted, or stay on this machine")
    func travel() {
        for (url, host, may) in [
            ("https://a.example/", "a.example", true), ("HTTPS://a.example/", "a.example", true),
            ("http://a.example/", "a.example", false), ("http://127.0.0.1:8480/", "127.0.0.1", true),
            ("http://localhost/", "LocalHost", true), ("http://[::1]/", "::1", true),
            ("http://127.0.0.1.example/", "127.0.0.1.example", false), ("http://10.0.0.1/", "10.0.0.1", false),
        ] {
            #expect(HTTPSource(url: url, host: host).mayCarryCredentials == may, "\(url)")
        }
    }

    @Test("a source that is fetched through a socket is on this machine, whatever its host is")
    func socket() {
        let source = HTTPSource(url: "http://engine.example/", host: "engine.example", unixSocket: "/run/engine.sock")
        #expect(source.isLocal && source.mayCarryCredentials)
        #expect(!SourceDefinition.http(source).needsNetworkByDefault)
    }

    @Test("the message of a failure is redacted before it is reported")
    func failure() throws {
        let stage = try Stage(redact: { $0.replacing("s3cret", with: "***") })
        stage.origin.answers(.fails(RunFailure(.refused, "the body said s3cret")))
        try stage.start()
        try stage.fire("start")
        guard case .failed(let failure, _, _) = stage.status.activity else {
            Issue.record("\(stage.status.activity)")
            return
        }
        #expect(failure.message == "the body said ***")
        #expect(stage.store.records.map(\.error) == ["the body said ***"])
    }
}

extension PipelineDefinition {
    fileprivate mutating func change(_ body: (inout HTTPSource) -> Void) {
        guard case .http(var source) = source else { return }
        body(&source)
        self.source = .http(source)
    }
}
