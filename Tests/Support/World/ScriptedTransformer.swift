package import FreshetPipelines

/// Programs are known by name: `upper` makes upper case, `true` and `false` are predicates. Of a text nothing is encoded.
package struct ScriptedTransformer: Transforming {
    package init() {}

    package func transform(
        _ input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8] {
        guard program == "upper" else { throw .failed(RunFailure(.content, "no such program")) }
        let text = String(decoding: input, as: UTF8.self).uppercased()
        return Array((format == .text ? "\"\(text)\"" : text).utf8)
    }

    package func values(
        of input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]] {
        throw .failed(RunFailure(.content, "no such program"))
    }

    package func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int? {
        throw .failed(RunFailure(.content, "no such form"))
    }

    package func holds(
        _ predicate: String, for input: [UInt8], in format: ContentFormat
    ) async throws(FetchError) -> Bool { predicate == "true" }
}
