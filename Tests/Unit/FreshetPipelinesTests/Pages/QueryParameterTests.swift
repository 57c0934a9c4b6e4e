import Testing

@testable import FreshetPipelines

@Suite("A parameter of a URL's query")
struct QueryParameterTests {
    @Test(
        "It replaces an earlier parameter of the same name, or is appended; other parameters stay unchanged",
        arguments: [
            ("http://a/x", "p", "1", "http://a/x?p=1"),
            ("http://a/x?", "p", "1", "http://a/x?p=1"),
            ("http://a/x?b=%2f+&c", "p", "1", "http://a/x?b=%2f+&c&p=1"),
            ("http://a/x?p=0&c=1", "p", "2", "http://a/x?p=2&c=1"),
            ("http://a/x?b=1&p&c=1&p=9", "p", "2", "http://a/x?b=1&p=2&c=1"),
            ("http://a/x?pp=1&P=2", "p", "3", "http://a/x?pp=1&P=2&p=3"),
            ("http://a/x?a=?p=1", "p", "3", "http://a/x?a=?p=1&p=3"),
            // A percent-encoded name is the same name.
            ("http://a/x?page%5Bno%5d=1", "page[no]", "2", "http://a/x?page%5Bno%5D=2"),
            ("http://a/x?%24skip=1&a%2=b", "$skip", "2", "http://a/x?%24skip=2&a%2=b"),
        ])
    func place(url: String, name: String, value: String, expected: String) {
        #expect(QueryParameter.setting(name, to: value, in: url) == expected)
    }

    @Test("A value cannot change the structure")
    func encoded() {
        #expect(
            QueryParameter.setting("p", to: "a b&c=d#e/../?\n%é", in: "http://a")
                == "http://a?p=a%20b%26c%3Dd%23e%2F..%2F%3F%0A%25%C3%A9")
    }
}
