import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The key format")
struct FormatTests {
    @Test("each source and the copy have their own format, JSON by default")
    func formats() throws {
        let configuration = load(
            pipeline: """
                sources:
                  a: {url: https://a.example/list.txt, format: text}
                  b: {file: /b, format: json}
                  c: {file: /c, each: {as: x, file: /d, format: text}}
                combine: .a
                transform: .[]
                cache: {file: list.txt, format: text}
                """)
        #expect(configuration.diagnostics == [])
        let definition = try #require(configuration.pipelines.first)
        #expect(definition.stage.all.map(\.format) == [.json, .text, .json, .json, .text])
        #expect(definition.cache.format == .text)
        let plain = try #require(load(pipeline: pipeline()).pipelines.first)
        #expect(plain.stage.format == .json && plain.cache.format == .json)
    }

    @Test("a changed format changes the binding, so the next request is not conditional")
    func binding() throws {
        func definition(_ format: String, _ copy: String) throws -> PipelineDefinition {
            let source = "{url: https://a.example/, format: \(format), transform: .}"
            return try #require(
                load(
                    pipeline: "source: \(source)\ncache: {file: a, format: \(copy)}\n"
                ).pipelines.first)
        }
        let bindings = try [("json", "json"), ("text", "json"), ("json", "text"), ("text", "text")].map {
            try definition($0, $1).validatorBinding()
        }
        #expect(Set(bindings).count == 4)
    }

    @Test("pages of text and an unknown format are errors, and a format without an effect is a warning")
    func errors() {
        let url = "url: https://a.example/"
        let paged = load(pipeline: pipeline(source: "{\(url), format: text, pages: {next: link}}")).diagnostics
        #expect(paged.map(\.message) == ["'format: text' and 'pages' exclude each other"])
        let unknown = load(pipeline: pipeline(source: "{\(url), format: lines}")).diagnostics
        #expect(unknown.map(\.message) == ["'format' has to be one of json, text, not 'lines'"])
        let idle = load(pipeline: pipeline(source: "{\(url), format: text}")).diagnostics
        #expect(idle.map(\.severity) == [.warning])
        #expect(idle.first?.message.contains("has no effect without a 'transform'") == true)
        #expect(load(pipeline: pipeline("transform: .", source: "{\(url), format: text}")).diagnostics == [])
    }
}
