import FreshetSignals
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Formats: contents as text")
struct FormatTests {
    private func copy(_ format: ContentFormat, transform: String?, _ answer: String) throws -> String? {
        var definition = Stage.definition(RefreshPolicy(freshFor: .zero), transform: transform)
        definition.stage.format = format
        let stage = try Stage(definition)
        stage.origin.answers(.content(answer))
        try stage.start()
        try stage.fire("start")
        return stage.store.text
    }

    @Test("a program gets a text as a JSON string; without a program the answer stays unchanged")
    func source() throws {
        #expect(try copy(.text, transform: "upper", "names") == "\"NAMES\"")
        #expect(try copy(.json, transform: "upper", "names") == "NAMES")
        #expect(try copy(.text, transform: nil, "names") == "names")
    }
}
