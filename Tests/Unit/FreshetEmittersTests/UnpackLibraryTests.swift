import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("The library that unpacks")
struct UnpackLibraryTests {
    @Test("a missing library is a problem for all formats but gzip, and has a remedy")
    func missing() throws {
        let file = "libarchive-that-does-not-exist.so"
        #expect(UnpackLibrary.problem(with: .compressed(.gzip), file: file) == nil)
        for rule in [UnpackRule.compressed(.xz), .member(of: .tar, path: "a"), .member(of: .zip, path: "a")] {
            let problem = try #require(UnpackLibrary.problem(with: rule, file: file))
            #expect(problem.message.hasPrefix("\(file) cannot be loaded: \(file): cannot open"))
            #expect(problem.remedy.contains("apt install libarchive13"))
        }
    }

    @Test("the rules of a pipeline have the keys that lead to them")
    func keys() {
        let branch = StageDefinition(.command(["/x"]), unpack: .compressed(.zstd))
        let list = StageDefinition(.command(["/x"]), unpack: .compressed(.xz), each: EachDefinition(as: "i", branch))
        let single = PipelineDefinition(name: "a", stage: list, cache: CacheRules(file: "a"))
        #expect(single.unpackRules.map(\.keys) == [["source", "unpack"], ["source", "each", "unpack"]])
        #expect(single.unpackRules.map(\.rule) == [.compressed(.xz), .compressed(.zstd)])
    }
}
