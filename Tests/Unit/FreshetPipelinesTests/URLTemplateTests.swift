import Testing

@testable import FreshetPipelines

@Suite("A URL with placeholders")
struct URLTemplateTests {
    private let topics = "https://api.example.com/topics/{topic.id}/media?lang={language}&q={query}"

    private func url(_ text: String, _ values: [String: String]) throws -> String {
        try URLTemplate(text).url { values[$0.description] }
    }

    @Test("only a URL without placeholders stands in the configuration as it is requested")
    func configured() {
        for (url, isConfigured) in [
            ("https://a.example/b?c=d", true), ("https://a.example/{b}", false), ("https://a.example/?b={c}", false),
            ("{item.url}", false),
        ] {
            let source = HTTPSource(url: url, host: "a.example")
            #expect(SourceDefinition.http(source).hasConfiguredURL == isConfigured)
            var rules = CheckRules()
            rules.sha256 = .list(source)
            #expect(rules.haveConfiguredURLs == isConfigured)
        }
        #expect(!SourceDefinition.file("/etc/hosts").hasConfiguredURL && CheckRules().haveConfiguredURLs)
    }

    @Test("has its placeholders in order, with the paths into their values")
    func placeholders() throws {
        #expect(
            try URLTemplate(topics).placeholders == [
                .init("topic", path: ["id"]), .init("language"), .init("query"),
            ])
        #expect(try URLTemplate("https://a.example/").placeholders.isEmpty)
    }

    @Test("keeps each value within its placeholder, whatever the value contains")
    func encoded() throws {
        let values = ["topic.id": "a/b?c#d", "language": "de&x=1", "query": "jazz ü\n%{}"]
        #expect(
            try url(topics, values)
                == "https://api.example.com/topics/a%2Fb%3Fc%23d/media?lang=de%26x%3D1&q=jazz%20%C3%BC%0A%25%7B%7D")
        #expect(try url("https://a.example/{a}-{b}.json", ["a": "x.~", "b": "_"]) == "https://a.example/x.~-_.json")
        #expect(try url("https://a.example/?q={q}", ["q": ""]) == "https://a.example/?q=")
        #expect(try url("https://a.example/?q={q}", ["q": ".."]) == "https://a.example/?q=..")
    }

    @Test("refuses a value that would change the path", arguments: ["", ".", ".."])
    func segments(_ value: String) throws {
        for text in ["https://a.example/{a}", "https://a.example/x/{a}/y", "https://a.example/{a}?b=c"] {
            #expect(throws: URLTemplate.ValidationError.notASegment(.init("a"), value)) { try url(text, ["a": value]) }
        }
        #expect(throws: URLTemplate.ValidationError.notASegment(.init("a"), ".")) {
            try url("https://a.example/{a}{b}/", ["a": ".", "b": "."])
        }
        #expect(try url("https://a.example/v{a}/", ["a": value]) == "https://a.example/v\(value)/")
        #expect(try url("https://a.example/{a}", ["a": "..."]) == "https://a.example/...")
    }

    @Test("has no placeholder before its path, and none without a name")
    func errors() {
        let host = URLTemplate.ValidationError.beforePath(.init("host"))
        for text in ["https://{host}/", "{host}://a.example/", "https://a.{host}", "{host}"] {
            #expect(throws: host) { try URLTemplate(text) }
        }
        for text in ["https://a.example/{", "https://a.example/}", "https://a.example/{a", "https://a.example/a}{b"] {
            #expect(throws: URLTemplate.ValidationError.unbalanced) { try URLTemplate(text) }
        }
        for name in ["", ".", "a.", ".a", "1", "-a", "a b", "a{", "ä", "a..b"] {
            #expect(throws: URLTemplate.ValidationError.notAName(name)) {
                try URLTemplate("https://a.example/{\(name)}")
            }
        }
    }

    @Test("reports a missing value, and a URL that is too long")
    func values() throws {
        #expect(throws: URLTemplate.ValidationError.missing(.init("topic", path: ["id"]))) { try url(topics, [:]) }
        let room = URLTemplate.maximumLength - "https://a.example/".utf8.count
        let longest = String(repeating: "x", count: room)
        #expect(try url("https://a.example/{a}", ["a": longest]).utf8.count == URLTemplate.maximumLength)
        #expect(throws: URLTemplate.ValidationError.tooLong(limit: URLTemplate.maximumLength)) {
            try url("https://a.example/{a}", ["a": longest + "x"])
        }
    }
}
