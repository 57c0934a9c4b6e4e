import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("URLs that come from data")
struct DataURLTests {
    private let template = HTTPSource(
        url: "{item.url}", headers: [.bearer("token")], host: "", clientCertificate: .init(certificate: "own"))

    private func following(
        _ text: String, from list: String? = "https://a.example/list", sameOrigin: Bool = true
    ) throws(RunFailure) -> HTTPSource {
        try template.following(
            text, at: .init("item", path: ["url"]), from: list.map { HTTPSource(url: $0, host: "") },
            sameOrigin: sameOrigin, resolve: ScriptedURLs.resolve)
    }

    private func rejection(_ text: String, from list: String? = "https://a.example/list", sameOrigin: Bool = true)
        -> String
    {
        do throws(RunFailure) {
            _ = try following(text, from: list, sameOrigin: sameOrigin)
            return "followed"
        } catch {
            return error.kind == .content ? error.message : "of another kind"
        }
    }

    @Test("a placeholder may be a whole URL; other text with placeholders is a template or invalid")
    func whole() {
        #expect(URLTemplate.whole("{item.url}") == .init("item", path: ["url"]))
        for text in ["{item.url}/x", "https://{host}/", "{a}{b}", "{}", "{", "}", "", "{a b}"] {
            #expect(URLTemplate.whole(text) == nil)
        }
        #expect(SourceDefinition.http(template).placeholders == [.init("item", path: ["url"])])
    }

    @Test("within the list's origin a request carries the whole configuration")
    func home() throws {
        let source = try following("https://a.example/keys?x=%20")
        #expect(source.url == "https://a.example/keys?x=%20" && source.host == "a.example")
        #expect(source.headers == template.headers && source.clientCertificate == template.clientCertificate)
    }

    @Test("another origin is refused unless it is allowed, and then gets nothing that is meant for the list's origin")
    func elsewhere() throws {
        #expect(rejection("https://b.example/").contains("is at https://b.example, another origin"))
        #expect(rejection("https://a.example:444/").contains("another origin"))
        let source = try following("https://b.example/", sameOrigin: false)
        #expect(source.url == "https://b.example/" && source.headers.isEmpty && source.clientCertificate == nil)
        let free = try following("http://b.example/", from: nil, sameOrigin: false)
        #expect(free.headers.isEmpty)
        #expect(rejection("http://b.example/", from: nil).contains("another origin than that of the list;"))
    }

    @Test("another origin gets neither the body of a POST nor the certificate authority of the list")
    func bodyAndAuthority() throws {
        let place = URLTemplate.Placeholder("item", path: ["url"])
        func following(_ template: HTTPSource, _ text: String) throws(RunFailure) -> HTTPSource {
            try template.following(
                text, at: place, from: HTTPSource(url: "https://a.example/list", host: ""), sameOrigin: false,
                resolve: ScriptedURLs.resolve)
        }
        let own = HTTPSource(url: "{item.url}", host: "", certificateAuthority: "/etc/own.pem")
        #expect(try following(own, "https://a.example/x").certificateAuthority == "/etc/own.pem")
        #expect(try following(own, "https://b.example/x").certificateAuthority == nil)
        let post = HTTPSource(url: "{item.url}", host: "", method: .post(body: "secret", contentType: "text/plain"))
        #expect(try following(post, "https://a.example/x").method == post.method)
        #expect {
            try following(post, "https://b.example/x")
        } throws: { error in
            guard let failure = error as? RunFailure, failure.kind == .content else { return false }
            return failure.message.contains("the body of a POST goes to the origin of the list only")
        }
    }

    @Test("a list that is fetched through a socket has no origin for URLs, whatever its host is")
    func socket() throws {
        let list = HTTPSource(url: "https://a.example/list", host: "a.example", unixSocket: "/run/a.sock")
        func following(_ text: String, sameOrigin: Bool) throws(RunFailure) -> HTTPSource {
            try template.following(
                text, at: .init("item"), from: list, sameOrigin: sameOrigin, resolve: ScriptedURLs.resolve)
        }
        #expect {
            try following("https://a.example/", sameOrigin: true)
        } throws: { error in
            (error as? RunFailure)?.message.contains("that of the list, which is fetched through a socket;") == true
        }
        let source = try following("https://a.example/", sameOrigin: false)
        #expect(source.headers.isEmpty && source.clientCertificate == nil)
        #expect(throws: RunFailure.self) { try following("http://b.example/", sameOrigin: false) }
    }

    @Test("an encrypted list does not lead to unencrypted URLs")
    func downgrade() throws {
        #expect(rejection("http://b.example/", sameOrigin: false).contains("unencrypted"))
        #expect(try following("http://b.example/", from: "http://a.example/", sameOrigin: false).host == "b.example")
    }

    @Test(
        "a text that is not an absolute HTTP URL as written is refused",
        arguments: [
            "", "/keys", "keys", "//b.example/", "ftp://b.example/", "file:///etc/passwd", "https:b.example",
            "https://b.example/a b", "https://b.example/\n", "https://b.example/\u{e9}", "javascript:x",
        ])
    func noURL(text: String) {
        #expect(rejection(text, sameOrigin: false).contains("is not an absolute http or https URL"))
    }

    @Test("a URL with a user name or password is refused, and so is one that is too long")
    func refused() {
        #expect(rejection("https://user:p@b.example/", sameOrigin: false).contains("names a user or a password"))
        #expect(rejection("https://user@a.example/").contains("names a user or a password"))
        #expect(rejection("https://b.example/@x?@", sameOrigin: false) == "followed")
        let long = "https://a.example/" + String(repeating: "x", count: URLTemplate.maximumLength)
        #expect(rejection(long).contains("is longer than"))
    }
}
