import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Places in bodies, headers and arguments, and URLs that come from data")
struct PlaceTests {
    private func diagnostics(_ source: String, parameters: String = "{query: {default: jazz}}") -> [String] {
        load(pipeline: pipeline("parameters: \(parameters)", source: source)).diagnostics.map {
            "\($0.severity.rawValue): \($0.message)" + ($0.remedy.map { "; \($0)" } ?? "")
        }
    }

    private let search = "url: https://a.example/, method: POST"

    @Test("places of parameters and items are taken wherever they may stand")
    func sound() throws {
        #expect(diagnostics("{\(search), body: '{\"q\": \"{query}\"}', headers: {X-Q: '{query}'}}") == [])
        let configuration = load(
            pipeline: pipeline(
                source: """
                    {url: https://a.example/, each: {as: item, \(search), body: '{"id": {item.id}}', headers: {X: '{item}'}}}
                    """))
        #expect(configuration.diagnostics == [])
        let each = try #require(configuration.pipelines.first?.stage.each)
        #expect(each.places.map(\.description) == ["item", "item.id"])
    }

    @Test("what is nearly a name is doubtful, what is far from any is left alone")
    func misspelt() {
        #expect(
            diagnostics("{\(search), body: '{\"q\": \"{qeury}\"}'}") == [
                "warning: nothing is called 'qeury', and '{qeury}' stays as it stands; did you mean '{query}'?"
            ])
        #expect(diagnostics("{url: https://a.example/, headers: {X: '{quary}'}}").count == 1)
        #expect(diagnostics("{exec: [/bin/x, '{querry}']}").count == 1)
        #expect(diagnostics("{exec: [/bin/awk, '{print}', '{ query }', '{query}']}") == [])
        #expect(
            diagnostics("{exec: [/bin/x, '{query.id}']}").first?.hasPrefix("warning: '{query.id}' looks into") == true)
    }

    @Test("a body of which the type is not known has no places, and defaults have to fit")
    func refused() {
        let xml = diagnostics("{\(search), content-type: text/xml, body: '<q>{query}</q>'}")
        #expect(xml.first?.hasPrefix("error: a body of the type 'text/xml' has no place for '{query}'") == true)
        #expect(diagnostics("{\(search), content-type: text/xml, body: '<q>{other}</q>'}") == [])
        let number = diagnostics("{\(search), body: '[{query}]'}")
        #expect(number.first?.hasPrefix("error: the default of 'query' stands in the body outside") == true)
        let header = diagnostics(
            "{url: https://a.example/, headers: {X: '{query}'}}", parameters: "{query: {default: é}}")
        #expect(header.first?.hasPrefix("error: the default of 'query' cannot stand in the header 'X'") == true)
    }

    @Test("a whole URL comes from an item, never from a parameter")
    func urlFromData() throws {
        let each = "url: https://a.example/, each: {as: item, url: '{item.url}'"
        let configuration = load(pipeline: pipeline(source: "{\(each), credential: token, client-certificate: own}}"))
        #expect(configuration.diagnostics == [])
        let definition = try #require(configuration.pipelines.first?.stage.each)
        #expect(definition.sameOrigin)
        #expect(definition.stage.source.places.map(\.description) == ["item.url"])
        let free = load(pipeline: pipeline(source: "{\(each), same-origin: false}}"))
        #expect(free.pipelines.first?.stage.each?.sameOrigin == false)
        #expect(diagnostics("{url: '{query}'}").first?.contains("would have another host") == true)
        #expect(diagnostics("{\(each), unix-socket: /run/x}}").first?.contains("'unix-socket' does not go") == true)
        #expect(
            diagnostics("{url: https://a.example/, each: {as: i, url: 'https://b.example/{i}', same-origin: false}}")
                .first?
                .hasPrefix("warning: 'same-origin' means nothing here") == true)
    }

    @Test("a URL of an outer item is judged by the outer list")
    func outerURL() {
        func nested(outer: String, inner: String, leaf: String = "") -> [String] {
            diagnostics(
                "{\(outer), each: {as: a, url: 'https://b.example/{a}', \(inner)each: {as: b, url: '{a}'\(leaf)}}}")
        }
        let url = "url: https://a.example/"
        #expect(nested(outer: url, inner: "") == [])
        #expect(nested(outer: url, inner: "same-origin: false, ") == [])
        #expect(nested(outer: url, inner: "", leaf: ", same-origin: false").count == 1)
        #expect(nested(outer: "file: /list.json", inner: "").first?.contains("the list comes from no origin") == true)
        #expect(nested(outer: "file: /list.json", inner: "same-origin: false, ") == [])
        #expect(nested(outer: "file: /list.json", inner: "same-origin: false, ", leaf: ", credential: t").count == 1)
    }

    @Test("a list that is asked through a socket is of no origin")
    func listOverSocket() {
        let each = "url: http://docker/list, unix-socket: /run/docker.sock, each: {as: item, url: '{item}'"
        #expect(diagnostics("{\(each)}}").first?.contains("the list comes from a socket, which is no URL's") == true)
        #expect(diagnostics("{\(each), same-origin: false}}") == [])
        #expect(diagnostics("{\(each), same-origin: false, credential: t}}").count == 1)
    }

    @Test("whatever is joined: no URL out of data leads to a socket, nor from one elsewhere unless that is allowed")
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
                == ["'unix-socket' does not go with a URL that an item names"])
        #expect(
            joined("file: /x, each: {as: i, file: '/x', each: {as: j, url: '{i}', unix-socket: /run/x}}")
                .contains("'unix-socket' does not go with a URL that an item names"))
    }

    @Test("of a list from no origin, URLs lead anywhere or nowhere, and nothing goes along")
    func listWithoutOrigin() {
        let each = "file: /list.json, each: {as: item, url: '{item}'"
        #expect(diagnostics("{\(each)}}").first?.contains("the list comes from no origin") == true)
        #expect(diagnostics("{\(each), same-origin: false}}") == [])
        for what in ["method: POST, body: x", "certificate-authority: /x.pem", "client-certificate: own"] {
            #expect(diagnostics("{\(each), same-origin: false, \(what)}}").count == 1)
        }
        #expect(diagnostics("{\(each), same-origin: false, credential: t}}").count == 1)
    }
}
