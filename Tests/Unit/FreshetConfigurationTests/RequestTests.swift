import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The keys of a request")
struct RequestTests {
    private func source(_ text: String) -> HTTPSource? {
        guard case .http(let source) = load(pipeline: pipeline(source: text)).pipelines.first?.source else {
            return nil
        }
        return source
    }

    @Test("the default method is GET, and the default type of a body is JSON")
    func method() {
        #expect(source("{url: https://a.example/}")?.method == .get)
        #expect(source("{url: https://a.example/, method: GET}")?.method == .get)
        #expect(
            source("{url: https://a.example/, method: POST}")?.method
                == .post(body: "", contentType: "application/json"))
        #expect(
            source("{url: https://a.example/, method: POST, body: '{\"q\": 1}'}")?.method
                == .post(body: "{\"q\": 1}", contentType: "application/json"))
        #expect(
            source("{url: https://a.example/, method: POST, body: 'a=b', content-type: text/plain; charset=utf-8}")?
                .method == .post(body: "a=b", contentType: "text/plain; charset=utf-8"))
        let block = load(
            pipeline: """
                source:
                  url: https://a.example/
                  method: POST
                  body: |
                    {"query": "jazz"}
                cache: {file: a}
                """)
        guard case .http(let long) = block.pipelines.first?.source else {
            Issue.record("\(texts(block.diagnostics))")
            return
        }
        #expect(long.method == .post(body: "{\"query\": \"jazz\"}\n", contentType: "application/json"))
    }

    @Test(
        "contradictory keys are errors at their location",
        arguments: [
            (
                "{url: https://a.example/, body: x}",
                "1:35: error: 'body' needs the method POST; write method: POST, or leave it out"
            ),
            (
                "{url: https://a.example/, method: GET, body: x}",
                "1:48: error: 'body' needs the method POST; write method: POST, or leave it out (see "
                    + "jwks.yaml:1:35)"
            ),
            (
                "{url: https://a.example/, method: post}",
                "1:43: error: 'method' has to be one of GET, POST, not 'post'; did you mean 'POST'?"
            ),
            (
                "{url: https://a.example/, method: PUT, body: x}",
                "1:43: error: 'method' has to be one of GET, POST, not 'PUT'"
            ),
            (
                "{url: https://a.example/, method: POST, content-type: a/b}",
                "1:49: error: 'content-type' needs a 'body'; leave it out; to choose the type of the answer, use the "
                    + "header Accept"
            ),
            (
                "{url: https://a.example/, method: POST, body: x, content-type: json}",
                "1:72: error: 'content-type' has to be a media type such as application/json, not 'json'"
            ),
            (
                "{url: https://a.example/, method: POST, body: x, headers: {content-type: a/b}}",
                "1:58: error: 'headers' has the type of the body; use the key 'content-type' instead (see "
                    + "jwks.yaml:1:49)"
            ),
            (
                "{url: https://a.example/, method: POST, body: {q: 1}}",
                "1:55: error: 'body' has to be text, in quotation marks or after '|', not keys with values"
            ),
            (
                "{file: /x, method: POST}",
                "1:20: error: 'method' needs a 'url', but the source is 'file'; leave it out"
            ),
        ])
    func rejected(source: String, expected: String) {
        #expect(errors(pipeline(source: source)) == ["jwks.yaml:\(expected)"])
    }

    @Test("a body has at most 64 KiB")
    func longest() {
        let text = String(repeating: "x", count: RequestReader.maximumBodyLength)
        #expect(errors(pipeline(source: "{url: https://a.example/, method: POST, body: \(text)}")) == [])
        #expect(
            errors(pipeline(source: "{url: https://a.example/, method: POST, body: \(text)x}")) == [
                "jwks.yaml:1:55: error: 'body' is longer than 65536 bytes"
            ])
    }

    @Test("a socket is a path of at most 107 bytes")
    func socket() {
        let path = "/run/" + String(repeating: "x", count: 102)
        #expect(source("{url: http://engine/, unix-socket: \(path)}")?.unixSocket == path)
        #expect(
            errors(pipeline(source: "{url: http://engine/, unix-socket: \(path)x}")) == [
                "jwks.yaml:1:44: error: 'unix-socket' is longer than 107 bytes, the limit for the path of a socket"
            ])
        #expect(
            errors(pipeline(source: "{url: http://engine/, unix-socket: engine.sock}")) == [
                "jwks.yaml:1:44: error: 'unix-socket' has to be an absolute path, not 'engine.sock'; begin it with '/': "
                    + "the service has its own working directory"
            ])
        // Nothing leaves the machine.
        #expect(errors(pipeline(source: "{url: http://engine/, unix-socket: /run/e, credential: t}")) == [])
    }

    @Test("redirects and allow-unframed are read")
    func redirects() {
        let plain = source("{url: https://a.example/}")
        #expect(plain?.redirects == .any && plain?.allowsUnframed == false)
        let narrow = source("{url: https://a.example/, redirects: same-origin, allow-unframed: true}")
        #expect(narrow?.redirects == .sameOrigin && narrow?.allowsUnframed == true)
        #expect(
            errors(pipeline(source: "{url: https://a.example/, redirects: some}")).first?
                .contains("'redirects' has to be") == true)
        #expect(errors(pipeline(source: "{file: /a, redirects: none}")).first?.contains("'redirects'") == true)
    }

    @Test("a client certificate and its key are credentials, and the authority is a path")
    func certificates() {
        let full = source(
            "{url: https://a.example/, client-certificate: c, client-key: k, certificate-authority: /etc/ca.pem}")
        #expect(full?.clientCertificate == .init(certificate: "c", key: "k"))
        #expect(full?.certificateAuthority == "/etc/ca.pem")
        #expect(
            source("{url: https://a.example/, client-certificate: c}")?.clientCertificate == .init(certificate: "c"))
        for (text, expected) in [
            (
                "{url: https://a.example/, client-key: k}",
                "1:35: error: 'client-key' needs 'client-certificate'; add the name of the credential with the "
                    + "certificate"
            ),
            (
                "{url: http://127.0.0.1/, client-certificate: c}",
                "1:34: error: 'client-certificate' needs TLS, but the URL is not encrypted; begin the URL with "
                    + "https://, or leave it out (see jwks.yaml:1:10)"
            ),
            (
                "{url: http://127.0.0.1/, certificate-authority: /etc/ca.pem}",
                "1:34: error: 'certificate-authority' needs TLS, but the URL is not encrypted; begin the URL with "
                    + "https://, or leave it out (see jwks.yaml:1:10)"
            ),
            (
                "{url: https://a.example/, certificate-authority: ca.pem}",
                "1:58: error: 'certificate-authority' has to be an absolute path, not 'ca.pem'; begin it with '/': the "
                    + "service has its own working directory"
            ),
        ] {
            #expect(errors(pipeline(source: text)) == ["jwks.yaml:\(expected)"])
        }
        // A path where a name belongs.
        #expect(errors(pipeline(source: "{url: https://a.example/, client-certificate: /etc/c.pem}")).count == 1)
    }

    @Test("the excerpt of an error hides a body, which may contain a key")
    func hidden() {
        let diagnostics = load(
            pipeline: pipeline(source: "{url: https://a.example/, body: '{\"key\": \"s3cret\"}', method: PUT}")
        ).diagnostics
        #expect(!diagnostics.isEmpty)
        #expect(!diagnostics.map { $0.text() }.joined().contains("s3cret"))
    }
}
