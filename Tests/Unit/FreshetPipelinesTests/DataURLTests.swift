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

    private func refusal(_ text: String, from list: String? = "https://a.example/list", sameOrigin: Bool = true)
        -> String
    {
        do throws(RunFailure) {
            _ = try following(text, from: list, sameOrigin: sameOrigin)
            return "followed"
        } catch {
            return error.kind == .content ? error.message : "of another kind"
        }
    }

    @Test("a whole place is a URL's, and any other text with a place is a template or none")
    func whole() {
        #expect(URLTemplate.whole("{item.url}") == .init("item", path: ["url"]))
        for text in ["{item.url}/x", "https://{host}/", "{a}{b}", "{}", "{", "}", "", "{a b}"] {
            #expect(URLTemplate.whole(text) == nil)
        }
        #expect(SourceDefinition.http(template).places == [.init("item", path: ["url"])])
    }

    @Test("within the list's origin all goes along")
    func home() throws {
        let source = try following("https://a.example/keys?x=%20")
        #expect(source.url == "https://a.example/keys?x=%20" && source.host == "a.example")
        #expect(source.headers == template.headers && source.clientCertificate == template.clientCertificate)
    }

    @Test("another origin is refused unless it is allowed, and then nothing that is meant for the list's goes along")
    func elsewhere() throws {
        #expect(refusal("https://b.example/").contains("is at https://b.example, another origin"))
        #expect(refusal("https://a.example:444/").contains("another origin"))
        let source = try following("https://b.example/", sameOrigin: false)
        #expect(source.url == "https://b.example/" && source.headers.isEmpty && source.clientCertificate == nil)
        let free = try following("http://b.example/", from: nil, sameOrigin: false)
        #expect(free.headers.isEmpty)
        #expect(refusal("http://b.example/", from: nil).contains("another origin than that of the list;"))
    }

    @Test("neither the body of a POST goes along to another origin, nor the authority that is for the list's")
    func bodyAndAuthority() throws {
        let place = URLTemplate.Place("item", path: ["url"])
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

    @Test("a list that is asked through a socket has no origin that a URL could have, whatever its host is called")
    func socket() throws {
        let list = HTTPSource(url: "https://a.example/list", host: "a.example", unixSocket: "/run/a.sock")
        func following(_ text: String, sameOrigin: Bool) throws(RunFailure) -> HTTPSource {
            try template.following(
                text, at: .init("item"), from: list, sameOrigin: sameOrigin, resolve: ScriptedURLs.resolve)
        }
        #expect {
            try following("https://a.example/", sameOrigin: true)
        } throws: { error in
            (error as? RunFailure)?.message.contains("that of the list, which is asked through a socket;") == true
        }
        let source = try following("https://a.example/", sameOrigin: false)
        #expect(source.headers.isEmpty && source.clientCertificate == nil)
        #expect(throws: RunFailure.self) { try following("http://b.example/", sameOrigin: false) }
    }

    @Test("what was asked for encrypted leads to nothing that is not")
    func downgrade() throws {
        #expect(refusal("http://b.example/", sameOrigin: false).contains("unencrypted"))
        #expect(try following("http://b.example/", from: "http://a.example/", sameOrigin: false).host == "b.example")
    }

    @Test(
        "what is no absolute URL of HTTP as it stands is refused",
        arguments: [
            "", "/keys", "keys", "//b.example/", "ftp://b.example/", "file:///etc/passwd", "https:b.example",
            "https://b.example/a b", "https://b.example/\n", "https://b.example/\u{e9}", "javascript:x",
        ])
    func noURL(text: String) {
        #expect(refusal(text, sameOrigin: false).contains("is no absolute http or https URL"))
    }

    @Test("a user's name or password is refused, and so is what is too long")
    func refused() {
        #expect(refusal("https://user:p@b.example/", sameOrigin: false).contains("names a user or a password"))
        #expect(refusal("https://user@a.example/").contains("names a user or a password"))
        #expect(refusal("https://b.example/@x?@", sameOrigin: false) == "followed")
        let long = "https://a.example/" + String(repeating: "x", count: URLTemplate.maximumLength)
        #expect(refusal(long).contains("is longer than"))
    }
}
