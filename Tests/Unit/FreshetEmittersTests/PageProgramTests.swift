import FreshetEventLoop
import FreshetHelper
import Testing

@testable import FreshetEmitters
@testable import FreshetPipelines

/// With a real helper process, because the tests check the text of a jq program.
@Suite("Pages: reading items and the next page with a jq program")
struct PageProgramTests {
    let running: RunningLoop
    let transformer: JQTransformer

    init() throws {
        running = try RunningLoop()
        transformer = try JQTransformer.withRealHelper(running)
    }

    func read(_ page: String, _ pages: PagesDefinition, number: Int = 3) async throws -> PageProgram.ParsedPage {
        let program = PageProgram(pages)
        let outputs = try await transformer.values(of: Array(page.utf8), by: program.text, variables: [])
        return try program.parsed(outputs, page: number)
    }

    func failure(_ page: String, _ pages: PagesDefinition) async throws -> String {
        do {
            return "\(try await read(page, pages))"
        } catch let error as FetchError {
            guard case .failed(let failure) = error else { return "\(error)" }
            return failure.message
        } catch let failure as RunFailure {
            #expect(failure.kind == .content)
            return failure.message
        }
    }

    static func parsed(
        _ items: String, _ count: Int, next: String? = nil, more: Bool? = nil, total: Int? = nil
    ) -> PageProgram.ParsedPage {
        PageProgram.ParsedPage(items: Array(items.utf8), count: count, next: next, more: more, total: total)
    }

    static let cursor = NextRule.cursor(CursorRule(".next", parameter: "c", more: ".more"))

    @Test(
        "The program reads the items and the way to the next page",
        arguments: [
            ("[1,\"a\",{\"b\":null}]", PagesDefinition(next: .link), parsed("[1,\"a\",{\"b\":null}]", 3)),
            ("[]", PagesDefinition(next: .link), parsed("[]", 0)),
            (
                "{\"m\":[1],\"next\":\"=?-\\n\\u00e9\",\"more\":true}", PagesDefinition(next: cursor, items: ".m"),
                parsed("[1]", 1, next: "=?-\né", more: true)
            ),
            (
                "{\"m\":[1],\"next\":17,\"more\":null}", PagesDefinition(next: cursor, items: ".m"),
                parsed("[1]", 1, next: "17", more: false)
            ),
            (
                "{\"m\":[1],\"next\":null}", PagesDefinition(next: cursor, items: ".m # all\n"),
                parsed("[1]", 1, more: false)
            ),
            (
                "{\"m\":[1],\"next\":\"\"}",
                PagesDefinition(next: .cursor(CursorRule(".next # where", parameter: "c")), items: ".m"),
                parsed("[1]", 1)
            ),
            (
                "{\"m\":[{\"id\":5},{\"id\":7}]}",
                PagesDefinition(next: .lastKey(CursorRule(".id", parameter: "c"), PageSize()), items: ".m"),
                parsed("[{\"id\":5},{\"id\":7}]", 2, next: "7")
            ),
            (
                "{\"m\":[],\"has_more\":false}",
                PagesDefinition(
                    next: .lastKey(CursorRule(".id", parameter: "c", more: ".has_more"), PageSize()), items: ".m"),
                parsed("[]", 0, more: false)
            ),
            (
                "{\"m\":[1],\"t\":12.0}",
                PagesDefinition(next: .offset(parameter: "o", PageSize(total: ".t")), items: ".m"),
                parsed("[1]", 1, total: 12)
            ),
            (
                "{\"m\":[1],\"t\":\"12\"}",
                PagesDefinition(next: .page(parameter: "p", first: 1, PageSize(total: ".t")), items: ".m"),
                parsed("[1]", 1, total: 12)
            ),
            (
                "{\"m\":[1]}", PagesDefinition(next: .offset(parameter: "o", PageSize(total: ".t")), items: ".m"),
                parsed("[1]", 1)
            ),
            ("{\"m\":[1]}", PagesDefinition(next: .url("empty"), items: "[.m[]]"), parsed("[1]", 1)),
        ])
    func readings(page: String, pages: PagesDefinition, expected: PageProgram.ParsedPage) async throws {
        #expect(try await read(page, pages) == expected)
    }

    @Test(
        "A page in an unexpected format is a failure that names the page and the program",
        arguments: [
            (
                "{\"error\":1}", PagesDefinition(next: .link),
                "page 3: pages.items (.) has to give one array, and gives object"
            ),
            (
                "{\"a\":1}", PagesDefinition(next: .link, items: ".media"),
                "page 3: pages.items (.media) has to give one array, and gives null"
            ),
            (
                "[1,2]", PagesDefinition(next: .link, items: ".[]"),
                "page 3: pages.items (.[]) has to give one array, and gives 2 outputs"
            ),
            (
                "[1]", PagesDefinition(next: .link, items: ".media"),
                "the jq program failed: pages.items: Cannot index array with"
            ),
            (
                "[1]", PagesDefinition(next: .url(".paging.next")),
                "the jq program failed: pages.next.url: Cannot index array with"
            ),
            ("", PagesDefinition(next: .link), "page 3 is empty, where JSON is expected"),
            ("[1] [2]", PagesDefinition(next: .link), "page 3 is not one JSON text, or a program of 'pages' ended"),
            ("[1]", PagesDefinition(next: .url("halt")), "page 3 is not one JSON text, or a program of 'pages' ended"),
            ("<html>", PagesDefinition(next: .link), "the input of the jq program is not JSON"),
            ("[1", PagesDefinition(next: .link), "the input of the jq program is not JSON"),
            (
                "[1]", PagesDefinition(next: .url("{}")),
                "page 3: pages.next.url has to give text or a number, and gives object"
            ),
            (
                "[1]", PagesDefinition(next: .page(parameter: "p", first: 1, PageSize(total: "\"many\""))),
                "page 3: pages.next.total has to give a number, and gives string"
            ),
        ])
    func otherForms(page: String, pages: PagesDefinition, expected: String) async throws {
        let message = try await failure(page, pages)
        #expect(message.hasPrefix(expected), "\(message)")
    }

    @Test(
        "Items with one key are merged: the last item gets the position of the first; items without a key are kept",
        arguments: [
            (
                "[{\"k\":2,\"v\":1},{\"k\":1},{\"k\":2,\"v\":2},{\"k\":\"2\"},{\"k\":2,\"v\":3}]",
                "[{\"k\":2,\"v\":3},{\"k\":1},{\"k\":\"2\"}]"
            ),
            ("[{\"a\":1},{\"a\":2},{\"k\":null},{\"k\":1}]", "[{\"a\":1},{\"a\":2},{\"k\":null},{\"k\":1}]"),
            ("[]", "[]"),
        ])
    func merging(items: String, expected: String) async throws {
        let merged = try await transformer.transform(
            Array(items.utf8), by: PageProgram.merging(by: ".k # the key"), variables: [])
        #expect(String(decoding: merged, as: UTF8.self) == expected + "\n")
    }

    @Test("An item whose last state is deleted is left out; the last state of an item counts")
    func deleted() async throws {
        let merged = try await transformer.transform(
            Array(#"[{"k":1},{"k":2,"gone":true},{"k":3},{"k":2},{"k":3,"gone":true},{"k":4,"gone":null}]"#.utf8),
            by: PageProgram.merging(by: ".k", without: ".gone # is it?"), variables: [])
        #expect(String(decoding: merged, as: UTF8.self) == "[{\"k\":1},{\"k\":2},{\"k\":4,\"gone\":null}]\n")
    }

    @Test("The sync token is text or a number, and is read only if it is configured")
    func token() async throws {
        let pages = PagesDefinition(
            next: .link, items: ".m", key: ".id", sync: SyncRule(".token # of it", parameter: "since"))
        #expect(try await read(#"{"m":[],"token":"a=b"}"#, pages).token == "a=b")
        #expect(try await read(#"{"m":[],"token":17}"#, pages).token == "17")
        #expect(try await read(#"{"m":[1]}"#, pages).token == nil)
        #expect(
            try await failure(#"{"m":[],"token":{}}"#, pages)
                == "page 3: pages.sync-token.token has to give text or a number, and gives object")
        #expect(try await read(#"{"m":[],"token":"a"}"#, PagesDefinition(next: .link, items: ".m")).token == nil)
    }

    @Test("A hundred thousand items are merged within the helper's limits")
    func manyItems() async throws {
        let items = (0..<100_000).map { "{\"k\":\($0 / 2),\"v\":\($0)}" }.joined(separator: ",")
        let merged = try await transformer.transform(
            Array("[\(items)]".utf8), by: PageProgram.merging(by: ".k"), variables: [])
        let expected = (0..<50_000).map { "{\"k\":\($0),\"v\":\($0 * 2 + 1)}" }.joined(separator: ",")
        #expect(merged == Array("[\(expected)]\n".utf8))
    }
}
