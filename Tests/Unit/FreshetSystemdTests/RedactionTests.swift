import Testing

@testable import FreshetSystemd

@Suite("Redaction")
struct RedactionTests {
    @Test(
        "removes user info, values of the query and fragment from a URL",
        arguments: [
            ("https://example.com/a/b", "https://example.com/a/b"),
            ("https://ann:pw@example.com/a", "https://example.com/a"),
            ("https://ann@b:p@w@example.com:8443/a", "https://example.com:8443/a"),
            ("https://example.com/a?token=1&b=2#frag", "https://example.com/a?token=…&b=…"),
            ("https://example.com/a?q=ada&lang=de#frag", "https://example.com/a?q=…&lang=de"),
            ("https://example.com/a?page=3&format=json&page=" + "9", "https://example.com/a?page=3&format=json&page=9"),
            // A value that a harmless parameter does not have.
            ("https://example.com/a?lang=a%20b&page=12345678901234567", "https://example.com/a?lang=…&page=…"),
            // A token without a name, also in Base64 with padding, and names that look like tokens.
            ("https://example.com/a?dG9rZW4=", "https://example.com/a?…"),
            ("https://example.com/a?tokenonly==&x", "https://example.com/a?…"),
            ("https://example.com/a?9f8e7d=1&lang=de", "https://example.com/a?…&lang=de"),
            ("https://example.com/a?" + String(repeating: "a", count: 21) + "=1", "https://example.com/a?…"),
            (
                "https://example.com/a?" + String(repeating: "q=1&", count: 30),
                "https://example.com/a?" + String(repeating: "q=…&", count: 8) + "…"
            ),
            ("https://example.com/a?", "https://example.com/a?…"),
            ("https://example.com#secret", "https://example.com"),
            ("https://example.com?ann@x", "https://example.com?…"),
            ("https://example.com/@scope/name", "https://example.com/@scope/name"),
            ("https://ann:pw@\u{301}example.com/", "https://\u{301}example.com/"),
            ("/relative?token=1", "/relative?token=…"),
            ("", ""),
        ])
    func urls(_ url: String, _ shown: String) {
        #expect(Redaction.url(url) == shown)
    }

    @Test(
        "finds URLs in a text",
        arguments: [
            ("no URL here", "no URL here"),
            ("GET https://a:b@c.example/d?e=f: timed out", "GET https://c.example/d?e=… timed out"),
            ("from \"https://a:b@c/\" to <ftp://x:y@z/q?r>, done", "from \"https://c/\" to <ftp://z/q?…>, done"),
            ("https://a:b@c\nhttps://d:e@f", "https://c\nhttps://f"),
            ("://", "://"),
        ])
    func texts(_ text: String, _ shown: String) {
        #expect(Redaction.text(text) == shown)
    }
}
