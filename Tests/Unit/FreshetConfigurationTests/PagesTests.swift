import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The key pages")
struct PagesTests {
    func text(_ pages: String) -> String {
        pipeline(source: "\n  url: https://api.example.com/things\n  pages: \(pages)")
    }

    func pages(_ pages: String) throws -> PagesDefinition {
        let configuration = load(pipeline: text(pages))
        #expect(texts(configuration.diagnostics) == [])
        return try #require(configuration.pipelines.first?.stage.pages)
    }

    @Test("a source without pages is one answer; with next, all pages are one list")
    func defaults() throws {
        #expect(load(pipeline: pipeline()).pipelines.first?.stage.pages == nil)
        #expect(try pages("{next: link}") == PagesDefinition(next: .link))
        let defaults = PagesDefinition(next: .link)
        #expect(defaults.items == "." && defaults.key == nil && defaults.load == .all)
        #expect(defaults.max == 1000 && defaults.sameOrigin)
    }

    @Test("every key is read")
    func keys() throws {
        #expect(
            try pages("{next: {url: .next}, items: .media, key: .id, load: 1, max: 20, same-origin: false}")
                == PagesDefinition(
                    next: .url(".next"), items: ".media", key: ".id", load: .first(1), max: 20, sameOrigin: false))
        #expect(try pages("{next: link, load: all}").load == .all)
        #expect(
            try pages("{next: link, key: .id, sync-token: {token: .t, parameter: since, deleted: .gone}}")
                == PagesDefinition(
                    next: .link, key: ".id", sync: SyncRule(".t", parameter: "since", deleted: ".gone")))
        #expect(
            try pages("{next: link, key: .id, sync-token: {token: .t, parameter: since}}").sync
                == SyncRule(".t", parameter: "since"))
    }

    @Test(
        "each way to the next page is read",
        arguments: [
            ("{url: .paging.next}", NextRule.url(".paging.next")),
            ("{cursor: .next, parameter: cursor}", .cursor(CursorRule(".next", parameter: "cursor"))),
            (
                "{cursor: .next, parameter: cursor, more: .has_more}",
                .cursor(CursorRule(".next", parameter: "cursor", more: ".has_more"))
            ),
            ("{offset: $skip}", .offset(parameter: "$skip", PageSize())),
            (
                "{offset: offset, size: 50, size-parameter: limit, total: .total}",
                .offset(parameter: "offset", PageSize(50, parameter: "limit", total: ".total"))
            ),
            ("{page: 'page[number]'}", .page(parameter: "page[number]", first: 1, PageSize())),
            (
                "{page: p, first: 0, size: 100, total: .pages, past-end: 400}",
                .page(parameter: "p", first: 0, PageSize(100, total: ".pages", pastEnd: 400))
            ),
            (
                "{last-key: .id, parameter: after, more: .has_more, size: 2, size-parameter: limit}",
                .lastKey(
                    CursorRule(".id", parameter: "after", more: ".has_more"), PageSize(2, parameter: "limit"))
            ),
        ])
    func next(text: String, rule: NextRule) throws {
        #expect(try pages("{next: \(text)}").next == rule)
    }

    @Test(
        "an invalid value is an error at its location, with the remedy",
        arguments: [
            ("link", "3:10: error: 'pages' has to contain keys with values, not text"),
            ("{items: .x}", "3:10: error: 'pages' has no 'next'; write next: link, or one of {url: …}"),
            (
                "{next: .next}",
                "3:17: error: 'next' has to be 'link' or keys with values, not '.next'; for a program that"
            ),
            ("{next: Link}", "3:17: error: 'next' has to be 'link' or keys with values, not 'Link'"),
            ("{next: [link]}", "3:17: error: 'next' has to be 'link', or keys such as"),
            ("{next: {more: .x}}", "3:17: error: 'next' does not define how to find the next page; write next: link"),
            ("{next: {cursor: .c, url: .u}}", "3:18: error: 'cursor' and 'url' exclude each other; keep one"),
            ("{next: {cursor: .c}}", "3:17: error: 'cursor' has no 'parameter'; add the name of the query parameter"),
            (
                "{next: {cursor: .c, parameter: a=b}}",
                "3:41: error: 'parameter' is not the name of a query parameter; write only the name"
            ),
            (
                "{next: {url: .u, size: 3}}",
                "3:27: error: 'size' cannot be used with 'url', only with 'offset', 'page', 'last-key'"
            ),
            (
                "{next: {offset: o, first: 3}}",
                "3:29: error: 'first' cannot be used with 'offset', only with 'page'; "
                    + "leave"
            ),
            ("{next: {offset: o, size-parameter: s}}", "3:29: error: 'size-parameter' needs 'size'"),
            (
                "{next: {page: p, past-end: 200}}",
                "3:37: error: 'past-end' has to be a number from 400 to 499, not '200'"
            ),
            ("{next: {page: p, size: 0}}", "3:33: error: 'size' has to be a number from 1 to 1000000, not '0'"),
            ("{next: {crusor: .c}}", "3:18: error: unknown key 'crusor'; did you mean 'cursor'?"),
            ("{next: link, items: ' '}", "3:30: error: 'items' is an empty program; leave the key out"),
            ("{next: link, load: none}", "3:29: error: 'load' has to be a number from 1 to 100000, not 'none'"),
            ("{next: link, load: 0}", "3:29: error: 'load' has to be a number from 1 to 100000, not '0'"),
            ("{next: link, load: 3, max: 2}", "3:29: error: 'load' is greater than 'max' (2)"),
            (
                "{next: link, load: 1001}",
                "3:29: error: 'load' is greater than 'max' (1000); 1000 is the default of 'max': set"
            ),
            ("{next: link, max: 100001}", "3:28: error: 'max' has to be a number from 1 to 100000, not '100001'"),
            ("{next: link, same-origin: no}", "3:36: error: 'same-origin' has to be true or false, not 'no'"),
            (
                "{next: {page: p}, same-origin: false}",
                "3:28: warning: 'same-origin' has no effect here: all pages have the same URL"
            ),
            (
                "{next: link, sync-token: .t}",
                "3:35: error: 'sync-token' has to contain keys with values, not text"
            ),
            (
                "{next: link, key: .id, sync-token: {parameter: t}}",
                "3:45: error: 'sync-token' has no 'token'; add a program that returns the token, such as token: "
                    + ".nextSyncToken"
            ),
            (
                "{next: link, key: .id, sync-token: {token: .t}}",
                "3:45: error: 'sync-token' has no 'parameter'; add the "
                    + "name"
            ),
            (
                "{next: link, sync-token: {token: .t, parameter: t}}",
                "3:23: error: 'sync-token' needs 'key'; add the key by which changes are merged into the items"
            ),
            (
                "{next: link, key: .id, load: 1, sync-token: {token: .t, parameter: t}}",
                "3:33: error: 'load' and 'sync-token' exclude each other; the last page contains the token: write "
                    + "load: all"
            ),
            (
                "{next: link, key: .id, sync-token: {token: .t, parameter: t, delete: .d}}",
                "3:71: error: unknown key 'delete'; did you mean 'deleted'?"
            ),
        ])
    func invalid(pages: String, expected: String) {
        let found = errors(text(pages))
        #expect(found.contains { $0.hasPrefix("jwks.yaml:\(expected)") }, "\(found)")
    }

    @Test("only a URL has pages")
    func otherSources() {
        #expect(
            errors("source: {file: /x, pages: {next: link}}\ncache: {file: jwks.json}\n") == [
                "jwks.yaml:1:20: error: 'pages' needs a 'url': other sources have one answer; leave it out"
            ])
    }

    @Test("the programs of pages are compiled, and an error is reported at its location")
    func programs() {
        let source = """

              url: https://api.example.com/things
              pages:
                next: {cursor: .next, parameter: c, more: '.more['}
                items: .media
                key: .id
            """
        let loader = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/c"]),
            fileSystem: InMemoryFileSystem(texts: ["/c/pipelines/a.yaml": pipeline(source: source)]))
        let configuration = loader.load()
        #expect(configuration.pipelines.first?.programs.map(\.text) == [".next", ".more[", ".media", ".id"])
        let rejected = loader.addingProgramErrors(
            [ProgramError(pipeline: "a", program: ".more[", message: "no end")], in: configuration)
        #expect(
            texts(rejected.diagnostics).map { $0.split(separator: "/").last.map(String.init) } == [
                "a.yaml:4:47: error: 'more' is not a valid jq program: no end"
            ])
    }

    @Test("changed pages change the copy")
    func product() throws {
        let definitions = ["{next: link}", "{next: link, items: .x}", "{next: {url: .n}}", "{next: link, max: 2}"]
            .compactMap {
                load(pipeline: text($0)).pipelines.first
            }
        #expect(Set(definitions.map { $0.validatorBinding() }).count == 4)
        #expect(try !#require(definitions.first).makesTheSame(as: #require(definitions.last)))
    }
}
