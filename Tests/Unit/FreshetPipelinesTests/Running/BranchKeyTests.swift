import Testing

@testable import FreshetPipelines

@Suite("Keys of branches")
struct BranchKeyTests {
    private func items(_ keys: [String]) async throws(FetchError) -> [BranchItem] {
        let each = EachDefinition(
            as: "item", StageDefinition(.http(HTTPSource(url: "https://example.com/{item}", host: "example.com"))))
        let list = "[" + keys.map { "\"\($0)\"" }.joined(separator: ",") + "]"
        return try await each.items(of: Array(list.utf8), by: Words(), with: [])
    }

    @Test("have as many combining characters as any language uses")
    func accents() async throws {
        let keys = ["e\u{0301}\u{0323}", "ä", "e" + String(repeating: "\u{0301}", count: 30)]
        #expect(try await items(keys).map(\.key) == keys)
    }

    @Test("that are the same text in different encodings are an error: the two items would share one branch")
    func equivalent() async throws {
        await #expect {
            try await items(["e\u{301}", "x", "\u{e9}"])
        } throws: { error in
            guard case .failed(let failure) = error as? FetchError else { return false }
            return failure.kind == .content && failure.message.contains("the same text in different Unicode encodings")
        }
        // Exactly the same key: the last item counts.
        #expect(try await items(["\u{e9}", "\u{e9}"]).count == 1)
    }

    @Test(
        "with more than 30 combining characters in a row are rejected before a comparison, which takes quadratic time"
    )
    func manyMarks() async {
        await #expect {
            try await items(["e" + String(repeating: "\u{0301}\u{0323}", count: 16)])
        } throws: { error in
            guard case .failed(let failure) = error as? FetchError else { return false }
            return failure.kind == .content && failure.message.contains("more than 30 combining characters in a row")
        }
    }
}
