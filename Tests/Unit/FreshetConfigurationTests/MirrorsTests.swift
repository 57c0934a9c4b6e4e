import FreshetModel
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Mirrors in a pipeline's file")
struct MirrorsTests {
    private static let two = "urls: [https://a.example/x, https://b.example/y]"

    private func load(_ source: String, more: String = "") -> Configuration {
        FreshetConfigurationTests.load(pipeline: "source: {\(source)}\ncache: {file: a}\n\(more)")
    }

    private func messages(_ source: String, more: String = "") -> [String] {
        load(source, more: more).diagnostics.map(\.message)
    }

    @Test("mirrors have an order; the first one is the source's URL")
    func valid() throws {
        let configuration = load("\(Self.two), order: stable, headers: {Accept: text/csv}")
        #expect(configuration.diagnostics == [])
        let definition = try #require(configuration.pipelines.first)
        #expect(definition.mirrors?.order == .stable)
        #expect(definition.mirrors?.list.map(\.host) == ["a.example", "b.example"])
        #expect(definition.needsNetwork)
        let sources = definition.alternatives.compactMap { one -> HTTPSource? in
            if case .http(let source) = one.source { source } else { nil }
        }
        #expect(sources.map(\.url) == ["https://a.example/x", "https://b.example/y"])
        #expect(sources.allSatisfy { $0.headers.count == 1 && $0.mirrors == nil })
        #expect(try #require(load(Self.two).pipelines.first).mirrors?.order == .listed)
    }

    @Test(
        "the name of a mirror has no user information and no query, whatever follows their signs",
        arguments: [
            ("https://a.example/data?token=secret", "https://a.example/data"),
            ("https://ann:secret@a.example/data#secret", "https://a.example/data"),
            ("https://ann:secret@\u{301}a.example/", "https://\u{301}a.example/"),
            ("https://a.example/data?\u{301}secret", "https://a.example/data"),
            ("https://a.example/\u{301}ann@b", "https://a.example/\u{301}ann@b"),
        ])
    func name(url: String, expected: String) {
        #expect(Mirrors.Mirror(url: url, host: "a.example").name.hasSameBytes(as: expected))
    }

    @Test("each mirror has its own binding, and a copy of each belongs to the pipeline")
    func bindings() throws {
        let definition = try #require(load(Self.two).pipelines.first)
        let bindings = definition.alternatives.map { $0.validatorBinding() }
        #expect(Set(bindings).count == 2)
        for binding in bindings { #expect(definition.makes(binding, with: ParameterValues())) }
        #expect(!definition.makes("", with: ParameterValues()))
    }

    @Test("a parameter may be in each mirror's URL, and an unknown placeholder is an error")
    func placeholders() throws {
        let urls = "urls: ['https://a.example/x', 'https://b.example/{day}']"
        let configuration = load(urls, more: "parameters: {day: {default: mon}}")
        #expect(configuration.diagnostics == [])
        #expect(try #require(configuration.pipelines.first).source.placeholders.map(\.name) == ["day"])
        #expect(messages(urls).first?.contains("{day}") == true)
    }

    @Test("errors of mirrors")
    func errors() {
        for (source, message) in [
            ("urls: [https://a.example/x]", "'urls' has 1 URLs, and needs 2 to 8"),
            ("urls: [https://a.example/x, https://a.example/x]", "'urls' has the same URL twice"),
            ("urls: [https://a.example/x, http://b.example/x]", "'urls' has encrypted and unencrypted URLs"),
            ("url: https://a.example/x, \(Self.two)", "'urls' and 'url' exclude each other"),
            ("url: https://a.example/x, order: listed", "'order' needs 'urls'"),
            ("\(Self.two), unix-socket: /run/a", "'unix-socket' cannot be used with 'urls'"),
            ("\(Self.two), pages: {next: link}", "'pages' cannot be used with 'urls'"),
            (
                "urls: [http://a.example/x, http://b.example/x], credential: token",
                "a credential would be sent to 'a.example' unencrypted"
            ),
        ] {
            #expect(messages(source).contains(message), "\(source): \(messages(source))")
        }
        let nine = (1...9).map { "https://m\($0).example/" }.joined(separator: ", ")
        #expect(messages("urls: [\(nine)]") == ["'urls' has 9 URLs, and needs 2 to 8"])
    }

    @Test("invalid mirrors are errors themselves, and still count")
    func invalid() {
        let invalid = ["user:secret@a", "user:secret@b"].map { "http://\($0).example/" }.joined(separator: ", ")
        #expect(
            messages("urls: [\(invalid)]")
                == Array(repeating: "'urls' contains a user name or a password", count: 2))
    }
}
