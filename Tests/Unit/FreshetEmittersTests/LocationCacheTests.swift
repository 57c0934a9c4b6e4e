import Testing

@testable import FreshetEmitters

@Suite("Parsed URLs")
struct LocationCacheTests {
    @Test("the same URL is parsed once")
    func once() throws {
        var cache = LocationCache()
        let first = try #require(cache["https://USER@www.example.com/a?b#c"])
        #expect(first == Location("https://USER@www.example.com/a?b#c"))
        #expect(cache["https://USER@www.example.com/a?b#c"] == first)
        #expect(cache.parsed == 1)
        #expect(cache["https://www.example.com/b"]?.url == "https://www.example.com/b")
        #expect(cache.parsed == 2)
    }

    @Test("a text that is not a URL, and a very long URL, are parsed again")
    func notKept() {
        var cache = LocationCache()
        let long = "https://www.example.com/" + String(repeating: "a", count: LocationCache.mostBytes)
        for _ in 0..<2 {
            #expect(cache["file:///etc/passwd"] == nil)
            #expect(cache[long]?.url == long)
        }
        #expect(cache.parsed == 4)
    }

    @Test("the cache is bounded: it begins again when it is full")
    func bounded() {
        var cache = LocationCache()
        for number in 0...LocationCache.limit { _ = cache["https://www.example.com/\(number)"] }
        _ = cache["https://www.example.com/\(LocationCache.limit)"]
        #expect(cache.parsed == LocationCache.limit + 1)
        _ = cache["https://www.example.com/0"]
        #expect(cache.parsed == LocationCache.limit + 2)
    }
}
