import FreshetModel
import Testing

@testable import FreshetPipelines

/// What thousands of idle pipelines keep, in bytes: a type that grows past its limit costs each of them. A limit may be
/// raised for a good reason.
struct IdlePipelineTests {
    @Test func `an idle pipeline keeps about one KiB beside its definition`() {
        #expect(MemoryLayout<PipelineRunner.State>.size <= 1072)
        #expect(MemoryLayout<RefreshMachine>.size <= 576)
        #expect(MemoryLayout<CopyRecord>.size <= 216)
    }

    @Test func `requests that wait take one word while none does`() {
        #expect(MemoryLayout<RunQueue>.size <= MemoryLayout<Int>.size * 2 + 64)
    }

    @Test func `settings and the network that most pipelines do not have take one word`() {
        #expect(MemoryLayout<RefreshSettings>.size <= 24)
        #expect(MemoryLayout<NetworkGate>.size <= 64)
    }

    @Test func `a source without rare settings takes its URL, its fields, its host and its method`() {
        #expect(MemoryLayout<HTTPSource>.size <= 56)
        #expect(MemoryLayout<CacheRules>.size <= 24)
    }

    @Test func `a generation keeps the name of its file and shares the directory`() {
        #expect(MemoryLayout<CurrentGeneration>.size <= 144)
    }
}

struct RareSettingsTests {
    private static let source = HTTPSource(url: "https://a.example/", host: "a.example")

    @Test func `a source whose settings return to their defaults equals one that never had others`() {
        var source = Self.source
        source.proxy = .none
        source.redirects = .sameOrigin
        #expect(source != Self.source && source.proxy == .none && source.redirects == .sameOrigin)
        source.proxy = .environment
        source.redirects = .any
        #expect(source == Self.source && source.hashValue == Self.source.hashValue)
    }

    @Test func `pipelines with the same rules of the cache share them except for the name of the file`() {
        var first = PipelineDefinition(
            name: "a", source: .file("/a"), cache: CacheRules(file: "a.json", mode: 0o640, keep: 9))
        let second = PipelineDefinition(
            name: "b", source: .file("/b"), cache: CacheRules(file: "b.json", mode: 0o640, keep: 9))
        #expect(!first.cache.isShared(with: second.cache))
        first.share(with: second)
        #expect(first.cache.isShared(with: second.cache))
        #expect(first.cache.file == "a.json" && first.cache.keep == 9)
        first.cache.keep = 2
        #expect(second.cache.keep == 9 && first.cache.mode == 0o640)
    }

    @Test(arguments: ["/var/cache/freshet/current/a.json", "a.json", "/a.json", ""])
    func `a generation returns the path that it was made with`(path: String) {
        let generation = CurrentGeneration(
            number: 1, size: 0, digest: .zero, committedAt: WallTime(seconds: 0), path: path)
        #expect(generation.path == path)
    }

    @Test func `a path equals the same directory and name`() {
        #expect(PublishedLocation("/c/current/a") == PublishedLocation(directory: "/c/current/", name: "a"))
    }
}
