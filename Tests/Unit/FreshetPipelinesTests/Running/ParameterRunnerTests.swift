import FreshetModel
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("A running pipeline with parameters")
struct ParameterRunnerTests {
    private static func definition(
        url: String = "https://example.com/?l={language}&q={query}",
        parameters: [ParameterDefinition] = [
            ParameterDefinition("language", default: "en", rule: .choices(["en", "de", "fr"])),
            ParameterDefinition("query", default: "", quiet: .milliseconds(300)),
        ]
    ) -> PipelineDefinition {
        PipelineDefinition(
            name: "test", source: .http(HTTPSource(url: url, host: "example.com")),
            refresh: RefreshPolicy(freshFor: .zero), cache: CacheRules(file: "data"), parameters: parameters)
    }

    private func urls(_ stage: Stage) -> [String] {
        stage.origin.asked.map { if case .http(let source) = $0.source { source.url } else { "" } }
    }

    @Test("a run fills the URL with one set of values: defaults first, then the set values")
    func filled() throws {
        let stage = try Stage(Self.definition())
        try stage.start()
        try stage.fire("start")
        #expect(urls(stage) == ["https://example.com/?l=en&q="])
        #expect(try stage.set(["language": "de", "query": "a&b"]) == ["language", "query"])
        #expect(stage.origin.asked.count == 1)
        try stage.advance(0.3)
        #expect(urls(stage).last == "https://example.com/?l=de&q=a%26b")
        #expect(stage.causes == ["start", "parameter"])
        #expect(stage.status.lastCauses.map(\.detail) == ["language, query"])
        #expect(try stage.set(["language": "de"]) == [])
        try stage.advance(10)
        #expect(stage.origin.asked.count == 2)
    }

    @Test("a copy of other values is never confirmed by a conditional request, and one of the same values is")
    func conditional() throws {
        let stage = try Stage(Self.definition())
        stage.origin.answers(.content("data", tag: "\"1\""))
        try stage.start()
        try stage.fire("start")
        try stage.set(["language": "de"])
        try stage.fire("reload")
        try stage.advance(5)
        #expect(stage.origin.asked.map { $0.validators?.entityTag } == [nil, nil, "\"1\""])
    }

    @Test("a run with other values in progress is superseded, and its answer never becomes the copy")
    func superseded() throws {
        let stage = try Stage(Self.definition())
        stage.origin.answers(.hangs(), .content("german"))
        try stage.start()
        try stage.fire("start")
        #expect(stage.origin.open == 1)
        try stage.set(["language": "de"])
        #expect(stage.outcomes == [.superseded, .changed])
        #expect(stage.causes == ["start", "start, parameter"])
        #expect(stage.store.text == "german")
        #expect(stage.origin.open == 0)
    }

    @Test("a refused change changes nothing, and nothing is stored")
    func refused() throws {
        let stage = try Stage(Self.definition())
        try stage.start()
        #expect(throws: ParameterErrors.self) { try stage.set(["query": "x", "language": "xx"]) }
        try stage.advance(1)
        #expect(stage.origin.asked.isEmpty)
        #expect(stage.runner.parameters.map(\.value) == ["en", ""])
        #expect(stage.store.rememberedNow.parameters == [:])
    }

    @Test("set values survive a restart, with their copy; after unsetting, all have the defaults again")
    func restart() throws {
        let stage = try Stage(Self.definition())
        stage.origin.answers(.content("data", tag: "\"1\""))
        try stage.start()
        try stage.set(["language": "de", "query": "jazz"])
        #expect(stage.store.rememberedNow.parameters == ["language": "de", "query": "jazz"])
        try stage.advance(1)
        try stage.restart()
        #expect(stage.runner.parameters.map(\.value) == ["de", "jazz"])
        #expect(stage.runner.parameters.map(\.isSet) == [true, true])
        try stage.fire("start")
        #expect(urls(stage).last == "https://example.com/?l=de&q=jazz")
        #expect(stage.origin.asked.last?.validators?.entityTag == "\"1\"")
        #expect(try stage.set([:], othersToDefault: true) == ["language", "query"])
        #expect(stage.store.rememberedNow.parameters == [:])
        try stage.advance(1)
        #expect(urls(stage).last == "https://example.com/?l=en&q=")
    }

    @Test(
        "after a reload invalid values are dropped, reported and removed; the others stay, and so does the run"
    )
    func reloaded() throws {
        let stage = try Stage(Self.definition())
        try stage.start()
        try stage.set(["language": "de", "query": "jazz"])
        try stage.advance(1)
        let asked = stage.origin.asked.count
        // The change has no effect on the product: the run in progress is not disturbed.
        var same = Self.definition()
        same.parameters[0].rule = .choices(["de", "en"])
        stage.runner.reconfigure(same)
        try stage.executor.runUntilIdle()
        #expect(stage.events.allSatisfy { if case .parametersDropped = $0 { false } else { true } })
        stage.runner.reconfigure(
            Self.definition(
                url: "https://example.com/?l={language}",
                parameters: [ParameterDefinition("language", default: "en", rule: .choices(["en", "fr"]))]))
        try stage.executor.runUntilIdle()
        #expect(stage.events.contains(.parametersDropped(["language", "query"])))
        #expect(stage.store.rememberedNow.parameters == [:])
        #expect(stage.origin.asked.count == asked)
        try stage.fire("reload")
        #expect(urls(stage).last == "https://example.com/?l=en")
    }

    @Test("values that are invalid after a restart are reported and removed too")
    func restartedWithOther() throws {
        let stage = try Stage(Self.definition())
        try stage.start()
        try stage.set(["language": "de", "query": "jazz"])
        try stage.advance(1)
        try stage.restart(
            with: Self.definition(
                url: "https://example.com/?q={query}", parameters: [ParameterDefinition("query", default: "")]))
        #expect(stage.events.contains(.parametersDropped(["language"])))
        #expect(stage.store.rememberedNow.parameters == ["query": "jazz"])
    }

    @Test("a source that cannot be filled fails its run with a message, and makes no request")
    func unfilled() throws {
        let stage = try Stage(Self.definition(parameters: [ParameterDefinition("language", default: "en")]))
        try stage.start()
        try stage.fire("start")
        #expect(stage.outcomes == [.failed])
        #expect(stage.origin.asked.isEmpty)
        #expect(
            stage.status.failing?.failure.message
                == "the source's URL has no value for '{query}'")
    }
}
