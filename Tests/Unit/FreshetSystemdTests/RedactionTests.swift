import Testing

@testable import FreshetSystemd

@Suite("Redaction")
struct RedactionTests {
    @Test(
        "removes user info, query and fragment from a URL",
        arguments: [
            ("https://example.com/a/b", "https://example.com/a/b"),
            ("https://ann:pw@example.com/a", "https://example.com/a"),
            ("https://ann@b:p@w@example.com:8443/a", "https://example.com:8443/a"),
            ("https://example.com/a?token=1&b=2#frag", "https://example.com/a?…"),
            ("https://example.com#secret", "https://example.com"),
            ("https://example.com?ann@x", "https://example.com?…"),
            ("https://example.com/@scope/name", "https://example.com/@scope/name"),
            ("https://ann:pw@\u{301}example.com/", "https://\u{301}example.com/"),
            ("/relative?token=1", "/relative?…"),
            ("", ""),
        ])
    func urls(_ url: String, _ shown: String) {
        #expect(Redaction.url(url) == shown)
    }

    @Test(
        "finds URLs in a text",
        arguments: [
            ("no URL here", "no URL here"),
            ("GET https://a:b@c.example/d?e=f: timed out", "GET https://c.example/d?… timed out"),
            ("from \"https://a:b@c/\" to <ftp://x:y@z/q?r>, done", "from \"https://c/\" to <ftp://z/q?…>, done"),
            ("https://a:b@c\nhttps://d:e@f", "https://c\nhttps://f"),
            ("://", "://"),
        ])
    func texts(_ text: String, _ shown: String) {
        #expect(Redaction.text(text) == shown)
    }
}
