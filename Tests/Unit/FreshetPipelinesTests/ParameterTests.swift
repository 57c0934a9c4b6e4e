import Testing

@testable import FreshetPipelines

@Suite("Parameters and their values")
struct ParameterTests {
    private static let parameters = [
        ParameterDefinition("language", default: "en", rule: .choices(["en", "de"])),
        ParameterDefinition("query", default: "", rule: .pattern("[\\w .&#/?=%-]*"), quiet: .milliseconds(300)),
    ]

    private static func definition(
        _ source: SourceDefinition, _ parameters: [ParameterDefinition] = parameters
    ) -> PipelineDefinition {
        PipelineDefinition(
            name: "home", source: source, cache: CacheRules(file: "home.json"), parameters: parameters)
    }

    private static func url(_ text: String) -> SourceDefinition {
        .http(HTTPSource(url: text, host: "a.example"))
    }

    private static let home = definition(url("https://a.example/t?lang={language}&q={query}"))

    /// The result of changes: the values, or the refusals.
    private func change(
        _ changes: [ParameterChange], of definition: PipelineDefinition = home, from: [String: String] = [:]
    ) -> (set: [String: String], refusals: [ParameterError]) {
        var settings = ParameterSettings(remembered: from, for: definition)
        do throws(ParameterErrors) {
            try settings.apply(changes, for: definition)
            return (settings.set, [])
        } catch {
            return (settings.set, error.refusals)
        }
    }

    // MARK: Changes

    @Test("changes are made together; one refused change refuses all, and all refusals are reported")
    func together() {
        let good = change([ParameterChange("language", to: "de"), ParameterChange("query", to: "jazz")])
        #expect(good.set == ["language": "de", "query": "jazz"])
        let bad = change(
            [
                ParameterChange("query", to: "jazz"), ParameterChange("language", to: "fr"),
                ParameterChange("quary", to: "x"), ParameterChange("language", to: "x\ny"),
            ], from: ["language": "de"])
        #expect(bad.set == ["language": "de"])
        #expect(
            bad.refusals == [
                ParameterError(name: "language", reason: .error("has to be one of en, de")),
                ParameterError(name: "quary", reason: .unknown(["language", "query"])),
                ParameterError(name: "language", reason: .error("contains a control character, such as a line break")),
            ])
    }

    @Test("nil resets to the default")
    func unset() {
        let result = change([ParameterChange("language", to: nil)], from: ["language": "de", "query": "x"])
        #expect(result.set == ["query": "x"])
        #expect(ParameterSettings(for: Self.home).values(for: Self.home)["language"] == "en")
    }

    @Test(
        "a value with several lines, or one that is too long, is refused whatever the rule is",
        arguments: [
            "\n", "a\tb", "\u{0}", "\u{7F}", "\u{85}", "\u{2028}", "\u{202E}x", String(repeating: "ä", count: 513),
        ])
    func text(value: String) {
        let definition = Self.definition(Self.url("https://a.example/?q={query}"), [.init("query", default: "")])
        #expect(change([ParameterChange("query", to: value)], of: definition).refusals.count == 1)
    }

    @Test("a value of 1,024 bytes is accepted")
    func longest() {
        let definition = Self.definition(Self.url("https://a.example/?q={query}"), [.init("query", default: "")])
        let value = String(repeating: "a", count: ParameterLimits.valueBytes)
        #expect(change([ParameterChange("query", to: value)], of: definition).set == ["query": value])
        #expect(change([ParameterChange("query", to: value + "a")], of: definition).refusals.count == 1)
    }

    @Test("a value that would change the URL's path is refused", arguments: ["..", ".", ""])
    func path(value: String) {
        let definition = Self.definition(
            Self.url("https://a.example/topics/{query}/media"), [.init("query", default: "all")])
        let result = change([ParameterChange("query", to: value)], of: definition)
        #expect(
            result.refusals == [
                ParameterError(
                    name: "query",
                    reason: .error("would make a segment of the URL's path empty, '.' or '..', which is another path"))
            ])
        #expect(change([ParameterChange("query", to: "a/../b")], of: definition).refusals == [])
    }

    @Test("in a branch's URL the item's placeholders count as filled, and the parameters' placeholders are checked")
    func branch() {
        var tree = Self.definition(Self.url("https://a.example/list"), [.init("query", default: "all")])
        tree.stage.each = EachDefinition(as: "topic", StageDefinition(Self.url("https://a.example/{topic.id}/{query}")))
        #expect(change([ParameterChange("query", to: "..")], of: tree).refusals.map(\.name) == ["query"])
        #expect(change([ParameterChange("query", to: "x")], of: tree).refusals == [])
    }

    @Test("values that are valid alone and together make the URL too long are refused")
    func tooLong() {
        let names = (0..<8).map { "p\($0)" }
        let definition = Self.definition(
            Self.url("https://a.example/?\(names.map { "{\($0)}" }.joined())"), names.map { .init($0, default: "") })
        let value = String(repeating: "a", count: 1000)
        let result = change(names.map { ParameterChange($0, to: value) }, of: definition)
        #expect(result.refusals.map(\.reason) == [.error("would make the URL longer than 8000 bytes")])
    }

    @Test("the choices of a secret are not shown")
    func secret() {
        let parameter = ParameterDefinition("api-key", default: "one", rule: .choices(["one", "two"]))
        #expect(parameter.error(of: "three") == "is not one of its choices")
    }

    @Test("stored values that are not valid any more are dropped")
    func remembered() {
        let settings = ParameterSettings(
            remembered: ["language": "fr", "query": "jazz", "gone": "x"], for: Self.home)
        #expect(settings.set == ["query": "jazz"])
        let other = Self.definition(Self.url("https://a.example/{query}"), [.init("query", default: "all")])
        #expect(ParameterSettings(remembered: ["query": ".."], for: other).set == [:])
    }

    // MARK: Filling

    @Test("in a URL values are percent-encoded, so they cannot change its structure")
    func filledURL() throws {
        let values = ParameterValues(["language": "de", "query": "a&x=1#/../?\u{E4}"])
        #expect(
            try Self.home.source.filled(values.value)
                == Self.url("https://a.example/t?lang=de&q=a%26x%3D1%23%2F..%2F%3F%C3%A4"))
        #expect(throws: RunFailure.self) { try Self.home.source.filled { _ in nil } }
        #expect(
            try Self.url("https://a.example/%7Bid%7D").filled { _ in nil } == Self.url("https://a.example/%7Bid%7D"))
    }

    @Test(
        "in an argument of a command values are inserted unchanged, in one argument; other braces stay",
        arguments: [
            ("--lang={language}", "--lang=de"), ("{query}", "a b; $(x) {language} \"'"), ("{print $1}", "{print $1}"),
            ("{unknown}", "{unknown}"), ("{language", "{language"), ("}{language}{", "}de{"),
            ("{{language}}", "{de}"), ("{language.x}", "{language.x}"), ("{}", "{}"),
            ("{print {language}}", "{print de}"),
        ])
    func filledArgument(argument: String, expected: String) throws {
        let values = ParameterValues(["language": "de", "query": "a b; $(x) {language} \"'"])
        #expect(
            try SourceDefinition.command(["/bin/{language}", argument]).filled(values.value)
                == .command(["/bin/{language}", expected]))
    }

    @Test("a copy with other values has another binding; with the same values it has the same")
    func binding() {
        func binding(_ values: [String: String]) -> String {
            Self.home.validatorBinding(with: ParameterValues(values))
        }
        #expect(binding(["language": "de", "query": "a"]) != binding(["language": "de", "query": "b"]))
        // A parameter that the source does not use makes no other copy.
        #expect(
            binding(["language": "de", "query": "a"]) == binding(["language": "de", "query": "a", "other": "x"]))
        // In a branch the value counts too, but the source of its list does not change.
        var tree = Self.definition(Self.url("https://a.example/list"))
        tree.stage.each = EachDefinition(as: "topic", StageDefinition(Self.url("https://a.example/{topic}?{query}")))
        #expect(
            tree.validatorBinding(with: ParameterValues(["query": "a"]))
                != tree.validatorBinding(with: ParameterValues(["query": "b"])))
        let command = Self.definition(.command(["/bin/x", "{query}"]))
        #expect(
            command.validatorBinding(with: ParameterValues(["query": "a"]))
                != command.validatorBinding(with: ParameterValues(["query": "b"])))
    }
}
