import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The key parameters")
struct ParameterFileTests {
    private static let source = "{url: 'https://a.example/t?l={language}'}"

    private func parameters(_ text: String) -> [String] {
        errors(pipeline("parameters: \(text)", source: "{url: 'https://a.example/'}"))
    }

    @Test("a parameter has a default, choices or a pattern, and a quiet period; parameters keep their order")
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
        // The URL keeps its placeholders: each run replaces them.
        #expect(
            definition.source
                == .http(HTTPSource(url: "https://a.example/t?l={language}&q={query}", host: "a.example")))
    }

    @Test("a drop-in changes a default and removes a parameter")
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
        "errors have a location and a remedy",
        arguments: [
            (
                "[a]",
                "13: error: 'parameters' has to contain names with keys, not a list; write parameters: {language: "
                    + "{default: en}}"
            ),
            (
                "{a: en}",
                "17: error: the parameter 'a' has to contain keys with values, not text; its keys are default, "
                    + "choices, pattern, quiet"
            ),
            (
                "{1a: {default: x}}",
                "14: error: '1a' cannot be the name of a parameter; use at most 64 letters, digits, '-' and '_', "
                    + "beginning with a letter or '_'"
            ),
            (
                "{a.b: {default: x}}",
                "14: error: 'a.b' cannot be the name of a parameter; use at most 64 letters, digits, '-' and '_', "
                    + "beginning with a letter or '_'"
            ),
            (
                "{a: {}}",
                "17: error: the parameter 'a' has no 'default'; add the value that it has until it is set; the value "
                    + "may be empty: default: \"\""
            ),
            (
                "{a: {default: }}",
                "27: error: 'default' has no value; it has to be text; for the default, leave the key out"
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
                "43: error: 'choices' contains a control character, such as a "
                    + "line break"
            ),
            (
                "{a: {default: z, choices: [x, y]}}",
                "27: error: the default of 'a' has to be one of x, y; change the default to an allowed value"
            ),
            (
                "{a: {default: A, pattern: '[a-z]'}}",
                "27: error: the default of 'a' has to match the pattern [a-z]; change the default to an allowed value"
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
            ("{a: {default: \"a\\tb\"}}", "27: error: 'default' contains a control character, such as a line break"),
            ("{a: {default: x, quiet: 2h}}", "37: error: 'quiet' has to be at most 1h"),
        ])
    func invalidParameters(text: String, expected: String) {
        #expect(parameters(text) == ["jwks.yaml:3:\(expected)"])
    }

    @Test("a duplicate choice is a warning")
    func twice() {
        #expect(
            parameters("{a: {default: x, choices: [x, x]}}")
                == ["jwks.yaml:3:43: warning: a choice appears twice; remove one of them"])
    }

    @Test(
        "a placeholder of a URL must be a parameter",
        arguments: [
            (
                "https://a.example/{langauge}",
                "has the unknown placeholder '{langauge}'; did you mean '{language}'?"
            ),
            ("https://a.example/{id}", "has the unknown placeholder '{id}'; the placeholders here are {language}"),
            (
                "https://a.example/{language.x}?{language.x}",
                "has '{language.x}', but the parameter 'language' has no fields; write {language}"
            ),
        ])
    func places(url: String, expected: String) {
        #expect(
            errors(pipeline("parameters: {language: {default: en}}", source: "{url: '\(url)'}"))
                == ["jwks.yaml:1:15: error: 'url' \(expected)"])
    }

    @Test("without parameters, the message explains how to declare one")
    func none() {
        #expect(
            errors(pipeline(source: "{url: 'https://a.example/{id}'}")) == [
                "jwks.yaml:1:15: error: 'url' has the unknown placeholder '{id}'; declare 'id' below "
                    + "'parameters'; write a literal brace as %7B or %7D"
            ])
    }

    @Test("each can use parameters, and its item must have another name")
    func each() {
        func text(_ name: String) -> String {
            pipeline(
                "parameters: {language: {default: en}}",
                source:
                    "{url: 'https://a.example/', each: {as: \(name), url: 'https://a.example/{item.id}?{language}'}}")
        }
        #expect(errors(text("item")) == [])
        #expect(
            errors(text("language")).contains {
                $0.hasSuffix("'language' is already used by a parameter or an outer 'each'; choose another name")
            })
    }

    @Test(
        "braces in a URL contain names, and follow the host",
        arguments: [
            ("https://{language}.example/", "has the placeholder '{language}' before its path"),
            ("https://a.example{language}", "has the placeholder '{language}' before its path"),
            ("{language}", "has the placeholder '{language}' before its path"),
            ("https://a.example/{language", "has an unbalanced brace"),
            ("https://a.example/language}", "has an unbalanced brace"),
            ("https://a.example/{}", "has braces around text that is not a name"),
            ("https://a.example/{a{b}}", "has braces around text that is not a name"),
        ])
    func braces(url: String, expected: String) {
        let text = pipeline("parameters: {language: {default: en}}", source: "{url: '\(url)'}")
        #expect(load(pipeline: text).diagnostics.map(\.message) == ["'url' \(expected)"])
    }

    @Test("a literal brace in a URL is percent-encoded, and in an argument it is unchanged")
    func literal() {
        #expect(errors(pipeline(source: "{url: 'https://a.example/%7Bid%7D'}")) == [])
        #expect(errors(pipeline(source: "{exec: [/usr/bin/awk, '{print $1}', '{id}']}")) == [])
    }

    @Test("a default must not make a path segment empty")
    func emptyDefault() {
        #expect(
            errors(pipeline("parameters: {query: {default: ''}}", source: "{url: 'https://a.example/{query}/x'}"))
                == [
                    "jwks.yaml:1:15: error: the default of 'query' would make a segment of the URL's path empty, '.' or "
                        + "'..', which is another path; change the default, or move the placeholder"
                ])
        #expect(
            errors(pipeline("parameters: {query: {default: ''}}", source: "{url: 'https://a.example/x?q={query}'}"))
                == [])
    }

    @Test("an invalid parameter is one error; the URL that uses it is not reported too")
    func once() {
        #expect(
            errors(pipeline("parameters: {language: {default: x, choices: [y]}}", source: Self.source)).count == 1)
    }

    @Test("there are at most 64 parameters, 256 choices, and names of 64 bytes")
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

    @Test("the excerpt of an error hides the default of a parameter with the name of a secret")
    func secret() {
        let text = pipeline(
            "parameters: {api-key: {default: opensesame, quiet: x}}", source: "{url: 'https://a.example/?k={api-key}'}")
        let shown = load(pipeline: text).diagnostics.map { $0.text() }.joined()
        #expect(shown.contains("quiet"))
        #expect(!shown.contains("opensesame"))
    }
}
