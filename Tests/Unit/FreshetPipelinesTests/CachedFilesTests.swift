import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Several files of one pipeline")
struct CachedFilesTests {
    private func definition(_ files: [CachedFile]) -> PipelineDefinition {
        var cache = CacheRules(file: "all")
        cache.files = files
        return PipelineDefinition(name: "a", source: .file("/a"), cache: cache)
    }

    @Test("another file name or program makes another product: the origin's earlier state says nothing about it")
    func binding() {
        let one = definition([CachedFile("a", by: ".a")])
        let others = [[], [CachedFile("b", by: ".a")], [CachedFile("a", by: ".b")], [CachedFile("a .a", by: "")]]
        for other in others.map(definition) {
            #expect(one.validatorBinding() != other.validatorBinding())
            #expect(!one.makesTheSame(as: other))
        }
        #expect(one.makesTheSame(as: definition([CachedFile("a", by: ".a")])))
    }

    // MARK: A run

    private func stage(transform: String? = nil, _ check: CheckRules = CheckRules()) throws -> Stage {
        var definition = Stage.definition(
            RefreshPolicy(every: .seconds(3600), freshFor: .zero), transform: transform, check: check)
        definition.cache.files = [CachedFile("all", by: ".")]
        let stage = try Stage(definition)
        try stage.start()
        return stage
    }

    @Test(
        "A run makes one object of all files from the transform's output; later requests are conditional"
    )
    func run() throws {
        let stage = try stage(transform: "upper")
        stage.origin.answers(.version("one", tag: "v1"))
        try stage.fire("start")
        #expect(stage.store.text == "{\"all\":ONE}\n")
        try stage.advance(3600)
        #expect(stage.origin.asked.map { $0.validators?.entityTag } == [nil, "v1"])
        #expect(stage.outcomes == [.changed, .unchanged])
        // Other programs make something else of an unchanged answer.
        var other = stage.definition
        other.cache.files = [CachedFile("all", by: ".all")]
        stage.runner.reconfigure(other)
        try stage.advance(60)
        #expect(stage.origin.asked.last?.validators == nil && stage.origin.asked.count == 3)
    }

    @Test("A long answer is read into memory, where its files are made")
    func long() throws {
        let stage = try stage()
        stage.origin.answers(.long("one"))
        try stage.fire("start")
        #expect(stage.store.text == "{\"all\":one}\n")
        #expect(stage.store.state.withLock { $0.bodies.count } == 0)
    }

    @Test("Checks get the object, and rejected content is kept in this form; data that is not one text fails the run")
    func refused() throws {
        let stage = try stage(CheckRules(minBytes: 13))
        stage.origin.answers(.content("good"))
        try stage.fire("start")
        #expect(stage.store.text == "{\"all\":good}\n")
        stage.origin.answers(.content("bad"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        #expect(stage.status.rejected?.digest == "{\"all\":bad}\n" && stage.status.rejected?.size == 12)
        stage.origin.answers(.content("two\ntexts"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        #expect(
            stage.status.failing?.failure.message == "cache.files needs one JSON text, but the program made several")
        #expect(stage.status.failing?.failure.rejection == nil && stage.store.text == "{\"all\":good}\n")
    }
}
