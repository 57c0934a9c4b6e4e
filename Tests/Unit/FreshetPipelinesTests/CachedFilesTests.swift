import Testing

@testable import FreshetPipelines

@Suite("Several files of one pipeline")
struct CachedFilesTests {
    private func definition(_ files: [CachedFile]) -> PipelineDefinition {
        var cache = CacheRules(file: "all")
        cache.files = files
        return PipelineDefinition(name: "a", source: .file("/a"), cache: cache)
    }

    @Test("make another product if a name or a program is another: what the origin had before says nothing of it")
    func binding() {
        let one = definition([CachedFile("a", by: ".a")])
        let others = [[], [CachedFile("b", by: ".a")], [CachedFile("a", by: ".b")], [CachedFile("a .a", by: "")]]
        for other in others.map(definition) {
            #expect(one.validatorBinding() != other.validatorBinding())
            #expect(!one.makesTheSame(as: other))
        }
        #expect(one.makesTheSame(as: definition([CachedFile("a", by: ".a")])))
    }
}
