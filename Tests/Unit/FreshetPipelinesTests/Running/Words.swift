@testable import FreshetPipelines

/// A list of words: `["a","b"]`. A word may say what it stands for: `"key=value"`, or nothing if that is empty.
struct Words: Transforming {
    func transform(
        _ input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8] { input }

    func values(
        of input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]] {
        guard program.contains("'each'") else { return [input] }
        let places = program.ranges(of: #"then "=" + ."#).count
        let quoted = String(decoding: input, as: UTF8.self).split(separator: "\"", omittingEmptySubsequences: false)
        return quoted.indices.filter { !$0.isMultiple(of: 2) }.flatMap { index in
            let parts = quoted[index].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.last?.isEmpty == true ? "-" : "=\(parts.last ?? "")"
            return (["\"\(quoted[index])\"", String(parts[0])] + Array(repeating: value, count: places)).map {
                Array($0.utf8)
            }
        }
    }

    func render(_ input: [UInt8], by template: TemplateDefinition) async throws(FetchError) -> [UInt8] { input }

    func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int? { nil }

    func holds(
        _ predicate: String, for input: [UInt8], in format: ContentFormat
    ) async throws(FetchError) -> Bool { true }
}
