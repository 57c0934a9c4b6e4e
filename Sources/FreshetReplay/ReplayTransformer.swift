import FreshetPipelines

/// A replay has no content, so no program runs.
struct ReplayTransformer: Transforming {
    func transform(
        _ input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8] { input }
    func values(
        of input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]] { [input] }
    func holds(
        _ predicate: String, for input: [UInt8], in format: ContentFormat
    ) async throws(FetchError) -> Bool { true }
    func render(_ input: [UInt8], by template: TemplateDefinition) async throws(FetchError) -> [UInt8] { input }
    func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int? { nil }
}
