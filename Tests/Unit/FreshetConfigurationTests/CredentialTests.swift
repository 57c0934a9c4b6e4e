import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Credentials in a pipeline's file")
struct CredentialTests {
    private func headers(_ source: String) -> [HTTPHeader]? {
        guard case .http(let source) = load(pipeline: pipeline(source: source)).pipelines.first?.source else {
            return nil
        }
        return source.headers
    }

    @Test("credential is a bearer token, and a header may have its own credential")
    func read() {
        #expect(headers("{url: https://a.example/, credential: api-token}") == [.bearer("api-token")])
        #expect(
            headers("{url: https://a.example/, headers: {Accept: a/b, X-Api-Key: {credential: k}}, credential: t}")
                == [HTTPHeader("Accept", "a/b"), HTTPHeader("X-Api-Key", credential: "k"), .bearer("t")])
        #expect(headers("{url: http://127.0.0.1:8480/, credential: t}") == [.bearer("t")])
    }

    @Test("a credential is a bearer token, a user with a password, or a header's value")
    func schemes() {
        #expect(headers("{url: https://a.example/, credential: {name: t}}") == [.bearer("t")])
        #expect(headers("{url: https://a.example/, credential: {name: t, as: bearer}}") == [.bearer("t")])
        #expect(headers("{url: https://a.example/, credential: {name: t, as: basic}}") == [.basic("t")])
        let own = HTTPHeader("X-Api-Key", credential: "t", as: .ownField)
        #expect(headers("{url: https://a.example/, credential: {name: t, as: header, header: X-Api-Key}}") == [own])
        #expect(headers("{url: https://a.example/, credential: {name: t, header: X-Api-Key}}") == [own])
    }

    @Test("a secret may be in a file, in each scheme")
    func files() {
        #expect(headers("{url: https://a.example/, credential-file: /run/token}") == [.bearer("/run/token")])
        #expect(headers("{url: https://a.example/, credential: {file: /run/token}}") == [.bearer("/run/token")])
        #expect(headers("{url: https://a.example/, credential: {file: /t, as: basic}}") == [.basic("/t")])
    }

    @Test("a client of OAuth 2.0 has a token URL, an identifier, a secret and perhaps a scope")
    func oauth2() {
        let client = OAuth2Client(tokenURL: "https://id.example/t", host: "id.example", identifier: "f", scope: "a b")
        let text = "{token-url: https://id.example/t, client-id: f, secret: s, scope: a b}"
        #expect(
            headers("{url: https://a.example/, credential: {oauth2: \(text)}}")
                == [HTTPHeader("Authorization", credential: "s", as: .oauth2(client))])
        let local = "{token-url: 'http://127.0.0.1:8/t', client-id: f, secret-file: /s}"
        #expect(headers("{url: https://a.example/, credential: {oauth2: \(local)}}")?.first?.credential == "/s")
    }

    @Test(
        "a secret in two places, in none, or sent unencrypted is an error",
        arguments: [
            ("credential: a, credential-file: /b", "'credential' and 'credential-file' exclude each other"),
            ("credential-file: b", "absolute path"), ("credential: {name: a, file: /b}", "'name' and 'file' exclude"),
            ("credential: {as: basic}", "'credential' has no 'name'"),
            ("credential: {oauth2: {client-id: f, secret: s}}", "'oauth2' has no 'token-url'"),
            ("credential: {oauth2: {token-url: https://i/t, secret: s}}", "'oauth2' has no 'client-id'"),
            ("credential: {oauth2: {token-url: https://i/t, client-id: f}}", "'oauth2' has no 'secret'"),
            ("credential: {oauth2: {token-url: http://i/t, client-id: f, secret: s}}", "unencrypted"),
            ("credential: {oauth2: {token-url: https://i/t, client-id: f, secret: s, secret-file: /s}}", "exclude"),
            ("credential: {as: bearer, oauth2: {token-url: https://i/t, client-id: f, secret: s}}", "exclude"),
            ("credential: {oauth2: {token-url: https://i/t, client-id: é, secret: s}}", "printable ASCII"),
        ])
    func wrongPlaces(keys: String, words: String) {
        let found = texts(load(pipeline: pipeline(source: "{url: https://a.example/x, \(keys)}")).diagnostics)
        #expect(found.count == 1 && found.first?.contains(words) == true, "\(found)")
    }

    @Test("a proxy is the word none, or the URL of an HTTP proxy without a password")
    func proxies() {
        func proxy(_ value: String) -> HTTPSource.Proxy? {
            let configuration = load(pipeline: pipeline(source: "{url: https://a.example/, proxy: \(value)}"))
            guard case .http(let source)? = configuration.pipelines.first?.source else { return nil }
            return source.proxy
        }
        #expect(proxy("none") == HTTPSource.Proxy.none)
        #expect(proxy("'http://p.example:3128'") == .url("http://p.example:3128"))
        #expect(proxy("'http://[::1]:3128/'") == .url("http://[::1]:3128/"))
        for wrong in [
            "direct", "'https://p.example'", "'socks5://p.example'", "'http://u:pa55word@p.example'",
            "'http://p.example/x'", "'http://p.example?x'", "'http://{p}'",
        ] {
            let configuration = load(pipeline: pipeline(source: "{url: https://a.example/, proxy: \(wrong)}"))
            let found = texts(configuration.diagnostics)
            #expect(found.count == 1 && !found[0].contains("pa55word"), "\(wrong): \(found)")
        }
        let socket = "{url: 'http://a/', unix-socket: /s, proxy: 'http://p.example'}"
        let found = texts(load(pipeline: pipeline(source: socket)).diagnostics)
        #expect(found.count == 1 && found[0].contains("'proxy' and 'unix-socket' exclude each other"), "\(found)")
    }

    @Test("a drop-in changes or removes the credential")
    func dropIn() {
        let texts = ["pipelines/jwks.yaml": pipeline(source: "{url: https://a.example/, credential: one}")]
        func headers(_ dropIn: String) -> [HTTPHeader]? {
            let configuration = load(texts.merging(["pipelines/jwks.yaml.d/a.yaml": dropIn]) { $1 })
            guard case .http(let source) = configuration.pipelines.first?.source else { return nil }
            return source.headers
        }
        #expect(headers("source: {credential: two}") == [.bearer("two")])
        #expect(headers("source: {credential: null}") == [])
    }

    @Test(
        "a credential that would be lost or leaked is an error",
        arguments: [
            (
                "{url: http://a.example/x, credential: t}",
                "1:15: error: a credential would be sent to 'a.example' unencrypted; begin the URL with https://; "
                    + "http:// is allowed only for this host (localhost, 127.0.0.1) (see jwks.yaml:1:35)"
            ),
            (
                "{url: http://a.example/, headers: {X-Key: {credential: t}}}",
                "1:15: error: a credential would be sent to 'a.example' unencrypted; begin the URL with https://; "
                    + "http:// is allowed only for this host (localhost, 127.0.0.1)"
            ),
            (
                "{url: https://a.example/, credential: t, headers: {authorization: Basic x}}",
                "1:35: error: 'credential' sets the header 'Authorization', which is also in 'headers'; keep one of "
                    + "them (see jwks.yaml:1:50)"
            ),
            (
                "{file: /x, credential: t}",
                "1:20: error: 'credential' needs a 'url', but the source is 'file'; leave it out"
            ),
            (
                "{url: https://a.example/, headers: {X: {credentail: t}}}",
                "1:48: error: 'X' has to be one line of text or {credential: NAME}; add the name of a credential of "
                    + "the service (LoadCredential=)"
            ),
            (
                "{url: https://a.example/, headers: {X: {credential: t, scheme: y}}}",
                "1:48: error: 'X' has to be one line of text or {credential: NAME}; add the name of a credential of "
                    + "the service (LoadCredential=)"
            ),
            (
                "{url: https://a.example/, credential: }",
                "1:47: error: 'credential' has no value; it has to be the name of a credential such as api-token; for "
                    + "the default, leave the key out"
            ),
            (
                "{url: https://a.example/, credential: {as: basic}}",
                "1:47: error: 'credential' has no 'name'; add the name of a credential of the service "
                    + "(LoadCredential=), or the path of a file as 'file'"
            ),
            (
                "{url: https://a.example/, credential: {name: t, as: digest}}",
                "1:61: error: 'as' has to be one of bearer, basic, header, not 'digest'"
            ),
            (
                "{url: https://a.example/, credential: {name: t, as: header}}",
                "1:47: error: 'credential' has no 'header'; add the name of the header for the secret: header: "
                    + "X-Api-Key"
            ),
            (
                "{url: https://a.example/, credential: {name: t, as: basic, header: X-Key}}",
                "1:68: error: 'header' needs 'as: header': a basic credential is sent in the header Authorization; "
                    + "keep "
                    + "one of them (see jwks.yaml:1:57)"
            ),
            (
                "{url: https://a.example/, credential: {name: t, header: 'X Key'}}",
                "1:65: error: 'header' is not a valid header name; use letters, digits and '-', without ':' and spaces"
            ),
            (
                "{url: https://a.example/, credential: {name: t, header: Range}}",
                "1:65: error: 'header' is a header that Freshet sets itself; leave it out"
            ),
            (
                "{url: https://a.example/, credential: {name: t, headr: X}}",
                "1:57: error: unknown key 'headr'; did you mean 'header'?"
            ),
            (
                "{url: https://a.example/, credential: {name: t, header: X-Key}, headers: {x-key: a}}",
                "1:35: error: 'credential' sets the header 'X-Key', which is also in 'headers'; keep one of them "
                    + "(see jwks.yaml:1:73)"
            ),
        ])
    func rejected(source: String, expected: String) {
        #expect(errors(pipeline(source: source)) == ["jwks.yaml:\(expected)"])
    }

    @Test(
        "a message does not repeat a secret that is written in place of its name",
        arguments: ["s3cret/+==", "'Bearer s3cret'", ".s3cret", "s3cret:x", "[s3cret]", "\"s3cret\\n\""])
    func pasted(value: String) {
        for source in ["credential: \(value)", "credential: {name: \(value)}", "headers: {X: {credential: \(value)}}"] {
            let diagnostics = load(pipeline: pipeline(source: "{url: https://a.example/, \(source)}")).diagnostics
            #expect(diagnostics.count == 1)
            #expect(!diagnostics.map { $0.text() }.joined().contains("s3cret"))
        }
    }

    @Test("a message does not show an invalid line that may contain a secret")
    func broken() {
        let diagnostics = load(pipeline: "source:\n  url: https://a.example/\n  credential: 's3cret\n").diagnostics
        #expect(!diagnostics.isEmpty)
        #expect(!diagnostics.map { $0.text() }.joined().contains("s3cret"))
    }

    @Test("a credential name has at most 64 bytes")
    func longest() {
        let name = String(repeating: "x", count: 64)
        #expect(headers("{url: https://a.example/, credential: \(name)}") == [.bearer(name)])
        #expect(errors(pipeline(source: "{url: https://a.example/, credential: \(name)x}")).count == 1)
    }

    @Test("a group is a name or a number")
    func group() {
        for name in ["www-data", "33", "_chrony"] {
            let configuration = load(pipeline: "source: {file: /x}\ncache: {file: a, group: \(name)}\n")
            #expect(configuration.pipelines.first?.cache.group == name)
        }
        for name in ["'a b'", "a:b", "-a", "''", "a/b"] {
            #expect(
                errors("source: {file: /x}\ncache: {file: a, group: \(name)}\n") == [
                    "jwks.yaml:2:25: error: 'group' is not the name of a group; see the first column of /etc/group"
                ])
        }
    }

    @Test("a missing credential is reported at its location, as an error or a warning")
    func hostEnvironment() throws {
        let files = ["pipelines/a.yaml": "source:\n  url: https://a.example/\n  credential: t\ncache: {file: a}\n"]
        var texts: [String: String] = [:]
        for (path, text) in files { texts["/etc/freshet/\(path)"] = text }
        let loader = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet"]), fileSystem: InMemoryFileSystem(texts: texts))
        let configuration = loader.load()
        let error = HostEnvironmentError(
            pipeline: "a", keys: ["source", "credential"], message: "no credential 't'", remedy: "hand it over")
        let rejected = loader.adding([error], as: .error, in: configuration)
        #expect(rejected.pipelines.isEmpty)
        let text = "/etc/freshet/pipelines/a.yaml:3:15: error: no credential 't'; hand it over"
        #expect(rejected.invalid["a"]?.first?.text().hasPrefix(text) == true)
        #expect(!rejected.isValid)
        let warned = loader.adding([error], as: .warning, in: configuration)
        #expect(warned.pipelines.map(\.name) == ["a"])
        #expect(warned.isValid && warned.invalid.isEmpty)
        #expect(warned.diagnostics.map(\.severity) == [.warning])
    }
}
