import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Parameters in a pipeline's file")
struct ParameterFileTests {
    private static let source = "{url: 'https://a.example/t?l={language}'}"

    private func parameters(_ text: String) -> [String] {
        faults(pipeline("parameters: \(text)", source: "{url: 'https://a.example/'}"))
    }

    @Test("A parameter has a default, choices or a pattern, and a quiet time; they keep their order")
    func read() throws {
        let configuration = load(
            pipeline: pipeline(
                """
                parameters:
                  language: {default: en, choices: [en, de]}
                  query: {default: "", pattern: '^[\\w ]*$', quiet: 300ms}
                  _x-1: {default: 5}
                """, source: "{url: 'https://a.example/t?l={language}&q={query}'}"))
        #expect(texts(configuration.diagnostics) == [])
        let definition = try #require(configuration.pipelines.first)
        #expect(
            definition.parameters == [
                ParameterDefinition("language", default: "en", rule: .choices(["en", "de"])),
                ParameterDefinition(
                    "query", default: "", rule: .pattern("^[\\w ]*$"), quiet: .milliseconds(300)),
                ParameterDefinition("_x-1", default: "5"),
            ])
        // As it is written: each run fills it.
        #expect(
            definition.source
                == .http(HTTPSource(url: "https://a.example/t?l={language}&q={query}", host: "a.example")))
    }

    @Test("A drop-in changes a default, and takes a parameter away")
    func dropIn() {
        let configuration = load([
            "pipelines/a.yaml": pipeline(
                "parameters: {language: {default: en}, other: {default: x}}", source: Self.source),
            "pipelines/a.yaml.d/b.yaml": "parameters: {language: {default: de}, other: null}\n",
        ])
        #expect(texts(configuration.diagnostics) == [])
        #expect(configuration.pipelines.first?.parameters == [ParameterDefinition("language", default: "de")])
    }

    @Test(
        "Faults have their places, and say what to do",
        arguments: [
            (
                "[a]",
                "13: error: 'parameters' has to hold names with keys, not a list; write parameters: {language: "
                    + "{default: en}}"
            ),
            (
                "{a: en}",
                "17: error: the parameter 'a' has to hold keys with values, not text; its keys are default, "
                    + "choices, pattern, quiet"
            ),
            (
                "{1a: {default: x}}",
                "14: error: '1a' cannot be the name of a parameter; use at most 64 letters, digits, "
                    + "'-' and '_', a letter or '_' first"
            ),
            (
                "{a.b: {default: x}}",
                "14: error: 'a.b' cannot be the name of a parameter; use at most 64 letters, "
                    + "digits, '-' and '_', a letter or '_' first"
            ),
            (
                "{a: {}}",
                "17: error: the parameter 'a' has no 'default'; say what it is as long as nobody sets it, which "
                    + "may be empty: default: \"\""
            ),
            (
                "{a: {default: }}",
                "27: error: 'default' has no value; it has to be text; to have the default, leave the "
                    + "key out"
            ),
            ("{a: {default: x, patern: y}}", "30: error: unknown key 'patern'; did you mean 'pattern'?"),
            (
                "{a: {default: x, choices: [x], pattern: x}}",
                "44: error: 'pattern' and 'choices' exclude each other; "
                    + "keep one (see jwks.yaml:3:30)"
            ),
            ("{a: {default: x, choices: []}}", "39: error: 'choices' has to be a list of 1 to 256 texts"),
            ("{a: {default: x, choices: x}}", "39: error: 'choices' has to be a list of 1 to 256 texts"),
            (
                "{a: {default: x, choices: [x, \"a\\nb\"]}}",
                "43: error: 'choices' holds a control character, such as a "
                    + "line break"
            ),
            (
                "{a: {default: z, choices: [x, y]}}",
                "27: error: the default of 'a' has to be one of x, y; a default is a "
                    + "value like any other"
            ),
            (
                "{a: {default: A, pattern: '[a-z]'}}",
                "27: error: the default of 'a' has to match the pattern [a-z]; a "
                    + "default is a value like any other"
            ),
            (
                "{a: {default: a, pattern: '(?i)a'}}",
                "39: error: 'pattern' has '(?'; groups are written (…) here, and "
                    + "have no options"
            ),
            (
                "{a: {default: a, pattern: '[a'}}",
                "39: error: 'pattern' has a '[' without its ']'; a literal one is \\["
            ),
            ("{a: {default: \"a\\tb\"}}", "27: error: 'default' holds a control character, such as a line break"),
            ("{a: {default: x, quiet: 2h}}", "37: error: 'quiet' has to be at most 1h"),
        ])
    func faultyParameters(text: String, expected: String) {
        #expect(parameters(text) == ["jwks.yaml:3:\(expected)"])
    }

    @Test("A choice that stands twice is a warning")
    func twice() {
        #expect(
            parameters("{a: {default: x, choices: [x, x]}}")
                == ["jwks.yaml:3:43: warning: a choice stands twice; once is enough"])
    }

    @Test(
        "A URL's places are parameters",
        arguments: [
            (
                "https://a.example/{langauge}",
                "has a place for 'langauge', and nothing is called so; did you mean '{language}'?"
            ),
            ("https://a.example/{id}", "has a place for 'id', and nothing is called so; there is {language}"),
            (
                "https://a.example/{language.x}?{language.x}",
                "looks with '{language.x}' into the parameter 'language'; a parameter is one text: write {language}"
            ),
        ])
    func places(url: String, expected: String) {
        #expect(
            faults(pipeline("parameters: {language: {default: en}}", source: "{url: '\(url)'}"))
                == ["jwks.yaml:1:15: error: 'url' \(expected)"])
    }

    @Test("Without parameters, what a place needs is said")
    func none() {
        #expect(
            faults(pipeline(source: "{url: 'https://a.example/{id}'}")) == [
                "jwks.yaml:1:15: error: 'url' has a place for 'id', and nothing is called so; declare 'id' below "
                    + "'parameters'; a literal brace is %7B or %7D"
            ])
    }

    @Test("Below 'each' there are parameters beside the item, which is not called as one of them")
    func each() {
        func text(_ name: String) -> String {
            pipeline(
                "parameters: {language: {default: en}}",
                source:
                    "{url: 'https://a.example/', each: {as: \(name), url: 'https://a.example/{item.id}?{language}'}}")
        }
        #expect(faults(text("item")) == [])
        #expect(
            faults(text("language")).contains {
                $0.hasSuffix("'language' is the name of something around it; choose another name")
            })
    }

    @Test(
        "A URL's braces hold names, behind the host",
        arguments: [
            ("https://{language}.example/", "would have another host with another 'language'"),
            ("https://a.example{language}", "would have another host with another 'language'"),
            ("{language}", "would have another host with another 'language'"),
            ("https://a.example/{language", "has a brace without its other one"),
            ("https://a.example/language}", "has a brace without its other one"),
            ("https://a.example/{}", "has braces around something that is no name"),
            ("https://a.example/{a{b}}", "has braces around something that is no name"),
        ])
    func braces(url: String, expected: String) {
        let text = pipeline("parameters: {language: {default: en}}", source: "{url: '\(url)'}")
        #expect(load(pipeline: text).diagnostics.map(\.message) == ["'url' \(expected)"])
    }

    @Test("A literal brace is percent-encoded, and other arguments of a command keep theirs")
    func literal() {
        #expect(faults(pipeline(source: "{url: 'https://a.example/%7Bid%7D'}")) == [])
        #expect(faults(pipeline(source: "{exec: [/usr/bin/awk, '{print $1}', '{id}']}")) == [])
    }

    @Test("With the defaults the path has to be whole")
    func emptyDefault() {
        #expect(
            faults(pipeline("parameters: {query: {default: ''}}", source: "{url: 'https://a.example/{query}/x'}"))
                == [
                    "jwks.yaml:1:15: error: the default of 'query' would make a part of the URL's path empty, '.' or "
                        + "'..', which is another path; give the parameter another default, or another place"
                ])
        #expect(
            faults(pipeline("parameters: {query: {default: ''}}", source: "{url: 'https://a.example/x?q={query}'}"))
                == [])
    }

    @Test("A faulty parameter is one fault: the URL that uses it is not at fault too")
    func once() {
        #expect(
            faults(pipeline("parameters: {language: {default: x, choices: [y]}}", source: Self.source)).count == 1)
    }

    @Test("There are at most 64 parameters, 256 choices, and names of 64 bytes")
    func limits() {
        func many(_ count: Int) -> String {
            "{" + (0..<count).map { "p\($0): {default: x}" }.joined(separator: ", ") + "}"
        }
        #expect(parameters(many(64)) == [])
        #expect(parameters(many(65)) == ["jwks.yaml:3:1: error: there are more than 64 parameters"])
        func choices(_ count: Int) -> String {
            "{a: {default: '0', choices: [\((0..<count).map(String.init).joined(separator: ", "))]}}"
        }
        #expect(parameters(choices(256)) == [])
        #expect(parameters(choices(257)).count == 1)
        #expect(parameters("{\(String(repeating: "a", count: 64)): {default: x}}") == [])
        #expect(parameters("{\(String(repeating: "a", count: 65)): {default: x}}").count == 1)
    }

    @Test("The default of a parameter whose name says that it is a secret is covered where a fault shows its line")
    func secret() {
        let text = pipeline(
            "parameters: {api-key: {default: opensesame, quiet: x}}", source: "{url: 'https://a.example/?k={api-key}'}")
        let shown = load(pipeline: text).diagnostics.map { $0.text() }.joined()
        #expect(shown.contains("quiet"))
        #expect(!shown.contains("opensesame"))
    }
}
