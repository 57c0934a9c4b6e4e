@testable import FreshetPipelines

/// A list is of words: `["a","b"]`.
struct Words: Transforming {
    func transform(
        _ input: [UInt8], by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8] { input }

    func values(
        of input: [UInt8], by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]] {
        guard program.contains("'each'") else { return [input] }
        return String(decoding: input, as: UTF8.self).split { !$0.isLetter }.flatMap { word in
            ["\"\(word)\"", String(word), "=\(word)"].map { Array($0.utf8) }
        }
    }

    func json(ofText text: [UInt8]) async throws(FetchError) -> [UInt8] { text }

    func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int? { nil }

    func holds(_ predicate: String, for input: [UInt8]) async throws(FetchError) -> Bool { true }
}
