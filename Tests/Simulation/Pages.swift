import FreshetPipelines
import WorldTestSupport

/// Pages as text: an item, and where the next page is, as in `good 3 > https://a.example.com/data?page=2`.
enum Pages {
    /// The number of pages of each set.
    static let count = 3

    /// The lines of a pipeline's file beside its URL: one page per check, further pages on demand.
    static let definition = ", pages: {next: {url: .next}, items: .items, load: 1}"

    /// The first page of a set is at the set's own URL.
    static func url(of page: Int, at base: String) -> String { page == 1 ? base : "\(base)?page=\(page)" }

    static func text(_ item: String, page: Int, at base: String) -> String {
        page < count ? "\(item) > \(url(of: page + 1, at: base))" : item
    }

    /// The item of a page, and the URL of the next one.
    static func reading(_ page: String) -> (item: String, next: String?) {
        guard let arrow = page.firstRange(of: " > ") else { return (page, nil) }
        return (String(page[..<arrow.lowerBound]), String(page[arrow.upperBound...]))
    }

    /// The items of a copy: a list in JSON, or one item as received.
    static func items(of copy: String) -> [String] {
        guard copy.hasPrefix("[") else { return [copy] }
        return copy.split(separator: "\"").enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) }
    }
}

/// Gives the outputs that the engine's program gives for such pages.
struct PageTransformer: Transforming {
    private let rest = ScriptedTransformer()

    func values(
        of input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]] {
        // For no input a program has no output.
        guard !input.isEmpty else { return [] }
        let (item, next) = Pages.reading(String(decoding: input, as: UTF8.self))
        return ["1", "[\"\(item)\"]", next.map { "=\($0)" } ?? "-", "-", "-"].map { Array($0.utf8) }
    }

    func transform(
        _ input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8] {
        try await rest.transform(input, in: format, by: program, variables: variables)
    }

    func render(_ input: [UInt8], by template: TemplateDefinition) async throws(FetchError) -> [UInt8] { input }

    func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int? {
        try await rest.items(of: content, as: form)
    }

    func holds(
        _ predicate: String, for input: [UInt8], in format: ContentFormat
    ) async throws(FetchError) -> Bool {
        try await rest.holds(predicate, for: input, in: format)
    }
}
