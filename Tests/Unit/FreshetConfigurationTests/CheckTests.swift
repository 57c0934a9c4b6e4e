import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The key check")
struct CheckTests {
    private func rules(_ check: String, cache: String = "{file: a}") throws -> CheckRules {
        let configuration = load(
            pipeline: "source: {url: https://a.example/}\ncheck: \(check)\ncache: \(cache)\n")
        #expect(configuration.diagnostics == [])
        return try #require(configuration.pipelines.first).check
    }

    private func diagnostics(_ check: String, cache: String = "{file: a}") -> [Diagnostic] {
        load(pipeline: "source: {url: https://a.example/}\ncheck: \(check)\ncache: \(cache)\n").diagnostics
    }

    @Test("format, items, percentages and times are read")
    func read() throws {
        let all = try rules(
            """
            {format: json, items: .keys, min-items: 3, shrink: 50%, valid-until: .until, made-at: .at,
              made-within: 2d}
            """)
        #expect(all.form == .json && all.items == ".keys" && all.minItems == 3 && all.shrink == 50)
        #expect(all.validUntil == ".until" && all.madeAt == ".at" && all.madeWithin == .seconds(2 * 86_400))
        #expect(try rules("{format: pem, min-items: 100, shrink: 0%}").shrink == 0)
        let none = try rules("{}")
        #expect(none == CheckRules() && !none.readsContent)
    }

    @Test("a changed check changes the binding, so the next request is not conditional")
    func binding() throws {
        let checks = [
            "{}", "{format: json}", "{min-items: 1}", "{min-items: 1, items: .a}", "{shrink: 1%}", "{shrink: 2%}",
            "{valid-until: .a}", "{made-at: .a}", "{made-at: .a, made-within: 1d}",
        ]
        let bindings = try checks.map { check in
            try #require(
                load(pipeline: "source: {url: https://a.example/}\ncheck: \(check)\ncache: {file: a}\n").pipelines.first
            ).validatorBinding()
        }
        #expect(Set(bindings).count == checks.count)
    }

    @Test("the programs of all keys are found")
    func programs() throws {
        let configuration = load(
            pipeline: pipeline("check: {jq: .a, items: .b, min-items: 1, valid-until: .c, made-at: .d}"))
        let programs = try #require(configuration.pipelines.first).programs.map(\.text)
        #expect(programs == [".a", ".b", ".c", ".d"])
    }

    @Test(
        "contradictory values are errors",
        arguments: [
            ("{shrink: 50}", "'shrink' has to be a percentage such as 50%, not '50'"),
            ("{shrink: 100%}", "'shrink' has to be a percentage from 0% to 99%, not '100%'"),
            ("{shrink: -1%}", "'shrink' has to be a percentage from 0% to 99%, not '-1%'"),
            ("{min-items: 0}", "'min-items' has to be a number from 1 to 1000000000, not '0'"),
            ("{format: yaml}", "'format' has to be one of json, text, xml, pem, gzip, not 'yaml'"),
            ("{format: xml, jq: .a}", "'jq' needs JSON or text, not xml"),
            ("{format: gzip, min-items: 1}", "'min-items' cannot count items in gzip"),
            ("{made-within: 1d}", "'made-within' needs 'made-at', the time when the data was made"),
        ])
    func errors(_ check: String, _ message: String) {
        #expect(diagnostics(check).map(\.message) == [message])
        #expect(diagnostics(check).first?.severity == .error)
    }

    @Test("JSON checks of a text copy are errors, and items without an effect are a warning")
    func doubts() {
        let text = diagnostics("{format: json}", cache: "{file: a, format: text}")
        #expect(text.map(\.message) == ["'format: json' contradicts 'cache.format: text'"])
        let idle = diagnostics("{items: .a}")
        #expect(idle.map(\.severity) == [.warning])
        #expect(idle.first?.remedy == "add one of them, or leave 'items' out")
    }
}
