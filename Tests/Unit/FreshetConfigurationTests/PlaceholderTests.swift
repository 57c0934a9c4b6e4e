import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Placeholders in bodies, headers and arguments, and URLs that come from data")
struct PlaceholderTests {
    private func diagnostics(_ source: String, parameters: String = "{query: {default: jazz}}") -> [String] {
        load(pipeline: pipeline("parameters: \(parameters)", source: source)).diagnostics.map {
            "\($0.severity.rawValue): \($0.message)" + ($0.remedy.map { "; \($0)" } ?? "")
        }
    }

    private let search = "url: https://a.example/, method: POST"

    @Test("placeholders of parameters and items are accepted in bodies and headers")
    func valid() throws {
        #expect(diagnostics("{\(search), body: '{\"q\": \"{query}\"}', headers: {X-Q: '{query}'}}") == [])
        let configuration = load(
            pipeline: pipeline(
                source: """
                    {url: https://a.example/, each: {as: item, \(search), body: '{"id": {item.id}}', headers: {X: '{item}'}}}
                    """))
        #expect(configuration.diagnostics == [])
        let each = try #require(configuration.pipelines.first?.stage.each)
        #expect(each.placeholders.map(\.description) == ["item", "item.id"])
    }

    @Test("a placeholder with a misspelled name is a warning, and other braces are literal text")
    func misspelt() {
        #expect(
            diagnostics("{\(search), body: '{\"q\": \"{qeury}\"}'}") == [
                "warning: the unknown placeholder '{qeury}' is not replaced; did you mean '{query}'?"
            ])
        #expect(diagnostics("{url: https://a.example/, headers: {X: '{quary}'}}").count == 1)
        #expect(diagnostics("{exec: [/bin/x, '{querry}']}").count == 1)
        #expect(diagnostics("{exec: [/bin/awk, '{print}', '{ query }', '{query}']}") == [])
        #expect(
            diagnostics("{exec: [/bin/x, '{query.id}']}").first?.hasPrefix(
                "warning: '{query.id}' is not "
                    + "replaced") == true)
    }

    @Test("a body of another type has no placeholders, and defaults have to be valid in their context")
    func rejected() {
        let xml = diagnostics("{\(search), content-type: text/xml, body: '<q>{query}</q>'}")
        #expect(
            xml.first?.hasPrefix(
                "error: a body of the type 'text/xml' cannot have the placeholder "
                    + "'{query}'") == true)
        #expect(diagnostics("{\(search), content-type: text/xml, body: '<q>{other}</q>'}") == [])
        let number = diagnostics("{\(search), body: '[{query}]'}")
        #expect(number.first?.hasPrefix("error: the default of 'query' stands in the body outside") == true)
        let header = diagnostics(
            "{url: https://a.example/, headers: {X: '{query}'}}", parameters: "{query: {default: é}}")
        #expect(header.first?.hasPrefix("error: the default of 'query' cannot stand in the header 'X'") == true)
    }

    @Test("a whole URL may come from an item, but not from a parameter")
    func urlFromData() throws {
        let each = "url: https://a.example/, each: {as: item, url: '{item.url}'"
        let configuration = load(pipeline: pipeline(source: "{\(each), credential: token, client-certificate: own}}"))
        #expect(configuration.diagnostics == [])
        let definition = try #require(configuration.pipelines.first?.stage.each)
        #expect(definition.sameOrigin)
        #expect(definition.stage.source.placeholders.map(\.description) == ["item.url"])
        let free = load(pipeline: pipeline(source: "{\(each), same-origin: false}}"))
        #expect(free.pipelines.first?.stage.each?.sameOrigin == false)
        #expect(diagnostics("{url: '{query}'}").first?.contains("before its path") == true)
        #expect(diagnostics("{\(each), unix-socket: /run/x}}").first?.contains("'unix-socket' cannot be used") == true)
        #expect(
            diagnostics("{url: https://a.example/, each: {as: i, url: 'https://b.example/{i}', same-origin: false}}")
                .first?
                .hasPrefix("warning: 'same-origin' has no effect here") == true)
    }

    @Test("a URL of an outer item is checked against the origin of the outer list")
    func outerURL() {
        func nested(outer: String, inner: String, leaf: String = "") -> [String] {
            diagnostics(
                "{\(outer), each: {as: a, url: 'https://b.example/{a}', \(inner)each: {as: b, url: '{a}'\(leaf)}}}")
        }
        let url = "url: https://a.example/"
        #expect(nested(outer: url, inner: "") == [])
        #expect(nested(outer: url, inner: "same-origin: false, ") == [])
        #expect(nested(outer: url, inner: "", leaf: ", same-origin: false").count == 1)
        #expect(nested(outer: "file: /list.json", inner: "").first?.contains("the list has no origin") == true)
        #expect(nested(outer: "file: /list.json", inner: "same-origin: false, ") == [])
        #expect(nested(outer: "file: /list.json", inner: "same-origin: false, ", leaf: ", credential: t").count == 1)
    }

    @Test("a list that is loaded through a socket has no origin")
    func listOverSocket() {
        let each = "url: http://docker/list, unix-socket: /run/docker.sock, each: {as: item, url: '{item}'"
        #expect(diagnostics("{\(each)}}").first?.contains("the list comes from a socket, which has no origin") == true)
        #expect(diagnostics("{\(each), same-origin: false}}") == [])
        #expect(diagnostics("{\(each), same-origin: false, credential: t}}").count == 1)
    }

    @Test("in joined sources, a URL from data does not use a socket, and leaves one only with same-origin: false")
    func joinedSockets() {
        func joined(_ source: String) -> [String] {
            load(pipeline: "sources: {a: {file: /x}, b: {\(source)}}\ncombine: .\ncache: {file: a}\n").diagnostics
                .map(\.message)
        }
        let list = "url: http://docker/list, unix-socket: /run/docker.sock"
        #expect(joined("\(list), each: {as: i, url: '{i}'}").first?.contains("the list comes from a socket") == true)
        #expect(joined("\(list), each: {as: i, url: '{i}', same-origin: false}") == [])
        #expect(
            joined("url: https://a.example/, each: {as: i, url: '{i}', unix-socket: /run/x}")
                == ["'unix-socket' cannot be used with a URL that an item gives"])
        #expect(
            joined("file: /x, each: {as: i, file: '/x', each: {as: j, url: '{i}', unix-socket: /run/x}}")
                .contains("'unix-socket' cannot be used with a URL that an item gives"))
    }

    @Test("URLs of a list without an origin need same-origin: false, and carry no credentials")
    func listWithoutOrigin() {
        let each = "file: /list.json, each: {as: item, url: '{item}'"
        #expect(diagnostics("{\(each)}}").first?.contains("the list has no origin") == true)
        #expect(diagnostics("{\(each), same-origin: false}}") == [])
        for what in ["method: POST, body: x", "certificate-authority: /x.pem", "client-certificate: own"] {
            #expect(diagnostics("{\(each), same-origin: false, \(what)}}").count == 1)
        }
        #expect(diagnostics("{\(each), same-origin: false, credential: t}}").count == 1)
    }
}
