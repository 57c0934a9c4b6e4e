import FreshetPipelines
import Testing

@testable import FreshetConfiguration

/// Each reader of a section works with a ``DefinitionReader`` alone, without the rest of a file.
@Suite("The readers of the sections of a file")
struct SectionReaderTests {
    private func file(_ text: String, _ reader: DefinitionReader) throws -> Section {
        let root = try #require(YAMLReader.read(SourceText(file: "a.yaml", bytes: Array(text.utf8))).root)
        return try #require(reader.root(.pipeline, root))
    }

    @Test("hooks are read alone; errors name the position")
    func hooks() throws {
        let reader = DefinitionReader()
        let hooks = HookReader(reader: reader).hooks(
            in: try file("on-change: [{exec: [/bin/true]}, {reload-unit: nginx}]", reader))
        #expect(hooks.count == 1)
        #expect(reader.errors.map(\.keyPath) == ["on-change.reload-unit"])
        #expect(reader.errors.first?.line == 1)
    }

    @Test("the budget and the signals of a pipeline are read alone")
    func refresh() throws {
        let reader = DefinitionReader()
        let policy = RefreshReader(reader: reader).refresh(
            in: try file("refresh: {on: [network], budget: 500/day, after: [base]}", reader))
        #expect(policy.on == [.network] && policy.budget == RequestBudget(500, per: .day))
        #expect(reader.predecessorNames == ["base"] && reader.errors.isEmpty)
    }

    @Test("several readers collect their errors in one object, in the order of reading")
    func errors() throws {
        let reader = DefinitionReader()
        let file = try file("refresh: {every: never}\non-change: []", reader)
        _ = RefreshReader(reader: reader).refresh(in: file)
        _ = HookReader(reader: reader).hooks(in: file)
        #expect(reader.errors.map(\.keyPath) == ["refresh.every", "on-change"])
    }
}
