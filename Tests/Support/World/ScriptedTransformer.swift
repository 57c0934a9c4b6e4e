package import FreshetPipelines

/// Programs are known by name: `upper` makes upper case, `true` and `false` are predicates. Texts are not encoded. A
/// program that makes an object gives one for each line, with that line as the value of `all`.
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
        guard program.hasPrefix("{") else { throw .failed(RunFailure(.content, "no such program")) }
        return input.split(separator: UInt8(ascii: "\n")).map { line in
            Array("{\"all\":\(String(decoding: line, as: UTF8.self))}".utf8)
        }
    }

    /// Replaces `{{.}}` by the input.
    package func render(_ input: [UInt8], by template: TemplateDefinition) async throws(FetchError) -> [UInt8] {
        Array(template.text.replacing("{{.}}", with: String(decoding: input, as: UTF8.self)).utf8)
    }

    package func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int? {
        throw .failed(RunFailure(.content, "no such form"))
    }

    package func holds(
        _ predicate: String, for input: [UInt8], in format: ContentFormat
    ) async throws(FetchError) -> Bool { predicate == "true" }
}
