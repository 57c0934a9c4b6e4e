import FreshetPipelines
import Testing

@Suite("The origin of a URL in the usual form")
struct UsualOriginTests {
    /// A scheme in capitals is not in the usual form, which has a parser of its own.
    @Test(
        "is the same as in another form",
        arguments: [
            "https://example.com/a?b#c", "https://example.com", "http://example.com?b", "http://example.com#c",
            "http://Example.COM/", "https://example.com:443/", "http://[::1]/a", "https://user@example.com/",
            "https://example.com@other.example/", "http://a_b.example/", "http://example.com:/", "http://a\\b/",
            "http://bücher.example/", "http://", "http:///a", "http:", "https://a:b/", "http://a b/", "http://-/",
            "http://a:8080/b", "http://a:80/", "https://a:80", "https://a:443?b", "http://a:443#c", "http://a:08080/",
            "http://a:99999/", "http://a:123456/", "http://a:8080b/", "http://a:/b", "http://a:80:80/", "http://a:81",
        ])
    func same(_ url: String) {
        let capitals = url.hasPrefix("https") ? "HTTPS" + url.dropFirst(5) : "HTTP" + url.dropFirst(4)
        #expect(HTTPOrigin(of: url) == HTTPOrigin(of: capitals))
    }
}
