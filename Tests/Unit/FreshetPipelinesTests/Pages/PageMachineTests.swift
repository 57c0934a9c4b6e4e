import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Pages: the next page")
struct PageMachineTests {
    typealias Facts = PageMachine.Facts

    static let url = "https://a.example/things?q=x"

    func machine(
        _ next: NextRule, url: String = Self.url, load: PageLoad = .all, max: Int = 100, sameOrigin: Bool = true,
        retry: RetryPolicy = RetryPolicy(from: .seconds(1), to: .seconds(10))
    ) -> PageMachine {
        PageMachine(
            PagesDefinition(next: next, load: load, max: max, sameOrigin: sameOrigin),
            of: HTTPSource(url: url, headers: [HTTPHeader("X-Own", "1")], host: "a.example"), retry: retry,
            jitter: Jitter(seed: 1)
        ) { ScriptedURLs.resolve($0, against: $1) }
    }

    func links(_ target: String, items: Int = 1, location: String? = nil) -> Facts {
        Facts(items: items, links: ["<\(target)>; rel=\"next\""], location: location)
    }

    /// The URL of the step's request; nil: the end.
    func url(_ step: PageMachine.Step) -> String? {
        guard case .load(let request) = step else { return nil }
        return request.source.url
    }

    func failure(_ body: () throws(RunFailure) -> PageMachine.Step) -> RunFailure? {
        do throws(RunFailure) {
            _ = try body()
            return nil
        } catch {
            return error
        }
    }

    // MARK: Rules for the next page

    @Test("By its link: relative to the URL that answered, until there is none")
    func link() throws {
        var machine = machine(.link)
        #expect(machine.first.source.url == Self.url)
        #expect(url(try machine.loaded(links("?page=2"))) == "https://a.example/things?page=2")
        #expect(
            url(try machine.loaded(links("?page=3", location: "https://a.example/moved")))
                == "https://a.example/moved?page=3")
        #expect(try machine.loaded(Facts(items: 1, links: ["</1>; rel=first"])) == .end(truncated: false))
    }

    @Test("By a URL of the body, absolute or relative, until there is none")
    func bodyURL() throws {
        var machine = machine(.url(".next"))
        #expect(url(try machine.loaded(Facts(items: 1, next: "/two?a=b"))) == "https://a.example/two?a=b")
        #expect(url(try machine.loaded(Facts(items: 1, next: "https://a.example/3"))) == "https://a.example/3")
        #expect(try machine.loaded(Facts(items: 1)) == .end(truncated: false))
    }

    @Test("By a cursor in the query; a cursor is ignored if no more pages follow")
    func cursor() throws {
        var machine = machine(.cursor(CursorRule(".c", parameter: "after", more: ".more")))
        #expect(url(try machine.loaded(Facts(items: 1, next: "a b", more: true))) == Self.url + "&after=a%20b")
        #expect(url(try machine.loaded(Facts(items: 1, next: "c=", more: true))) == Self.url + "&after=c%3D")
        #expect(try machine.loaded(Facts(items: 1, next: "d", more: false)) == .end(truncated: false))
    }

    @Test("If more pages follow at an unknown place, the set fails, since it would be incomplete")
    func moreWithoutCursor() {
        var machine = machine(.cursor(CursorRule(".c", parameter: "after", more: ".more")))
        let failure = failure { () throws(RunFailure) in try machine.loaded(Facts(items: 1, more: true)) }
        #expect(
            failure
                == RunFailure(
                    .content, "page 1 says by 'pages.next.more' that more pages follow, but not where they are"))
    }

    @Test("An empty page with a cursor is followed")
    func emptyPage() throws {
        var machine = machine(.cursor(CursorRule(".c", parameter: "c")))
        #expect(url(try machine.loaded(Facts(items: 0, next: "1"))) == Self.url + "&c=1")
        #expect(url(try machine.loaded(Facts(items: 2, next: "2"))) == Self.url + "&c=2")
        #expect(try machine.loaded(Facts(items: 0)) == .end(truncated: false))
    }

    @Test(
        "By offset: the items so far, until the total, a short page, or an empty page",
        arguments: [
            // items and total of each page; the last one is the end
            (PageSize(2, parameter: "limit"), [(2, nil), (2, nil), (1, nil)], ["2", "4"]),
            (PageSize(2, parameter: "limit"), [(2, nil), (0, nil)], ["2"]),
            (PageSize(100, parameter: "limit", total: ".t"), [(2, 5), (2, 5), (1, 5)], ["2", "4"]),
            (PageSize(2, parameter: "limit", total: ".t"), [(2, 4), (2, 4)], ["2"]),
            (PageSize(2, parameter: "limit", total: ".t"), [(2, 9), (0, 9)], ["2"]),
            (PageSize(2, parameter: "limit", total: ".t"), [(2, nil), (1, nil)], ["2"]),
            (PageSize(), [(7, nil), (1, nil), (0, nil)], ["7", "8"]),
        ] as [(PageSize, [(Int, Int?)], [String])])
    func offset(size: PageSize, pages: [(Int, Int?)], offsets: [String]) throws {
        var machine = machine(.offset(parameter: "from", size))
        let limit = size.parameter == nil ? "" : "&limit=\(size.size ?? 0)"
        #expect(machine.first.source.url == Self.url + "\(limit)&from=0")
        var urls: [String] = []
        for (items, total) in pages {
            let step = try machine.loaded(Facts(items: items, total: total))
            if let url = url(step) { urls.append(url) } else { #expect(step == .end(truncated: false)) }
        }
        #expect(urls == offsets.map { Self.url + "\(limit)&from=\($0)" })
        #expect(urls.count == pages.count - 1)
    }

    @Test(
        "By number: until the total of pages, a short page, or an empty page",
        arguments: [
            (1, PageSize(2), [(2, nil), (2, nil), (1, nil)], ["2", "3"]),
            (0, PageSize(), [(2, nil), (1, nil), (0, nil)], ["1", "2"]),
            // An empty page in the middle of what the origin counted.
            (1, PageSize(total: ".t"), [(2, 3), (0, 3), (1, 3)], ["2", "3"]),
            (0, PageSize(total: ".t"), [(2, 2), (2, 2)], ["1"]),
        ] as [(Int, PageSize, [(Int, Int?)], [String])])
    func number(first: Int, size: PageSize, pages: [(Int, Int?)], numbers: [String]) throws {
        var machine = machine(.page(parameter: "page", first: first, size), url: "https://a.example/?page=7&q=x")
        #expect(machine.first.source.url == "https://a.example/?page=\(first)&q=x")
        var urls: [String] = []
        for (items, total) in pages {
            let step = try machine.loaded(Facts(items: items, total: total))
            if let url = url(step) { urls.append(url) } else { #expect(step == .end(truncated: false)) }
        }
        #expect(urls == numbers.map { "https://a.example/?page=\($0)&q=x" })
        #expect(urls.count == pages.count - 1)
    }

    @Test("By the last item's key: until no more pages follow, a short page, or an empty page")
    func lastKey() throws {
        var sized = machine(.lastKey(CursorRule(".id", parameter: "after"), PageSize(2, parameter: "limit")))
        #expect(sized.first.source.url == Self.url + "&limit=2")
        #expect(url(try sized.loaded(Facts(items: 2, next: "k2"))) == Self.url + "&limit=2&after=k2")
        #expect(try sized.loaded(Facts(items: 1, next: "k3")) == .end(truncated: false))

        var flagged = machine(.lastKey(CursorRule(".id", parameter: "after", more: ".has_more"), PageSize(2)))
        #expect(url(try flagged.loaded(Facts(items: 1, next: "k1", more: true))) == Self.url + "&after=k1")
        #expect(try flagged.loaded(Facts(items: 2, next: "k3", more: false)) == .end(truncated: false))

        var plain = machine(.lastKey(CursorRule(".id", parameter: "after"), PageSize()))
        #expect(url(try plain.loaded(Facts(items: 1, next: "k1"))) == Self.url + "&after=k1")
        #expect(try plain.loaded(Facts(items: 0)) == .end(truncated: false))
    }

    @Test("A last item without a key, where more may follow, is a failure that names the program's key")
    func noLastKey() {
        var machine = machine(.lastKey(CursorRule(".id", parameter: "after"), PageSize(2)))
        let failure = failure { () throws(RunFailure) in try machine.loaded(Facts(items: 2)) }
        #expect(failure?.message == "page 1 has a last item without a key by 'pages.next.last-key'")
    }

    // MARK: Ends

    @Test("The requested number of pages is a set that is not truncated")
    func load() throws {
        var machine = machine(.link, load: .first(2))
        #expect(url(try machine.loaded(links("/2"))) != nil)
        guard case .rest(let bookmark) = try machine.loaded(links("/3")) else {
            Issue.record("it does not rest")
            return
        }
        #expect(bookmark.page == 3 && bookmark.items == 2 && bookmark.url == "https://a.example/3")
        // The last page is the end, and so is a page whose next one cannot be requested.
        var last = self.machine(.link, load: .first(1))
        #expect(try last.loaded(Facts(items: 1)) == .end(truncated: false))
        var back = self.machine(.link, load: .first(1))
        #expect(try back.loaded(links(Self.url)) == .end(truncated: false))
        var long = self.machine(.cursor(CursorRule(".c", parameter: "c")), load: .first(1))
        let cursor = String(repeating: "x", count: URLTemplate.maximumLength)
        #expect(try long.loaded(Facts(items: 1, next: cursor)) == .end(truncated: false))
        var most = self.machine(.link, load: .first(1), max: 1)
        #expect(try most.loaded(links("/2")) == .end(truncated: false))
    }

    // MARK: Continuing

    /// The bookmark of a machine after these pages.
    private func rest(_ machine: inout PageMachine, _ facts: Facts...) throws -> PageBookmark {
        for facts in facts.dropLast() { _ = try machine.loaded(facts) }
        guard case .rest(let bookmark) = try machine.loaded(try #require(facts.last)) else {
            throw RunFailure(.local, "it does not rest")
        }
        return bookmark
    }

    private func goingOn(_ next: NextRule, from bookmark: PageBookmark, load: Int = 1, max: Int = 100) -> PageMachine {
        PageMachine(
            PagesDefinition(next: next, load: .first(load), max: max),
            of: HTTPSource(url: Self.url, headers: [HTTPHeader("X-Own", "1")], host: "a.example"), from: bookmark,
            retry: RetryPolicy(), jitter: Jitter(seed: 1)
        ) { ScriptedURLs.resolve($0, against: $1) }
    }

    @Test("A set continues from a bookmark by one page, with its counts and URLs, as if it had not stopped")
    func goesOn() throws {
        let rule = NextRule.offset(parameter: "from", PageSize(2))
        var machine = machine(rule, load: .first(1))
        let bookmark = try rest(&machine, Facts(items: 2))
        var on = goingOn(rule, from: bookmark)
        #expect(on.first.page == 2)
        #expect(on.first.source.url == Self.url + "&from=2")
        #expect(on.first.source.headers == [HTTPHeader("X-Own", "1")])
        let second = try rest(&on, Facts(items: 2))
        #expect(second.page == 3 && second.url == Self.url + "&from=4" && second.seen.count == 2)
        var last = goingOn(rule, from: second)
        #expect(try last.loaded(Facts(items: 1)) == .end(truncated: false))
        // The set has more pages, and the limit forbids them.
        var limited = goingOn(rule, from: second, max: 3)
        #expect(try limited.loaded(Facts(items: 2)) == .end(truncated: true))
    }

    @Test(
        "A set that continues at another origin has no header fields of the source, and an earlier page is its end")
    func goesOnElsewhere() throws {
        var machine = machine(.link, load: .first(1), sameOrigin: false)
        let bookmark = try rest(&machine, links("https://b.example/2"))
        #expect(!bookmark.isAtHome)
        var on = goingOn(.link, from: bookmark)
        #expect(on.first.source == HTTPSource(url: "https://b.example/2", host: "b.example"))
        #expect(try on.loaded(links("https://b.example/2")) == .end(truncated: false))
        var home = goingOn(
            .link,
            from: PageBookmark(
                page: 2, items: 1, url: Self.url + "&p=2", host: "a.example", isAtHome: true,
                seen: [PageBookmark.number(of: Self.url)]))
        #expect(try home.loaded(links(Self.url)) == .end(truncated: false))
    }

    @Test("A continued set whose page is gone begins again, once, and has as many pages as it would have had")
    func restartsAfterRest() throws {
        var machine = machine(.link, load: .first(1))
        var on = goingOn(.link, from: try rest(&machine, links("/2")))
        #expect(on.failed(Self.gone) == .restart)
        on.restart()
        #expect(on.first.page == 1 && on.first.source.url == Self.url)
        #expect(url(try on.loaded(links("/a2"))) == "https://a.example/a2")
        #expect(try rest(&on, links("/a3")).page == 3)
        #expect(on.failed(Self.gone) == .fail)
    }

    @Test(
        "With a token all pages request changes; if the origin has forgotten the token (410), everything is loaded")
    func token() throws {
        func machine() -> PageMachine {
            PageMachine(
                PagesDefinition(
                    next: .cursor(CursorRule(".c", parameter: "c")), key: ".id",
                    sync: SyncRule(".t", parameter: "since")),
                of: HTTPSource(url: Self.url, host: "a.example"), token: "t=1", retry: RetryPolicy(),
                jitter: Jitter(seed: 1)
            ) { ScriptedURLs.resolve($0, against: $1) }
        }
        var known = machine()
        #expect(known.first.source.url == Self.url + "&since=t%3D1")
        #expect(url(try known.loaded(Facts(items: 1, next: "2"))) == Self.url + "&since=t%3D1&c=2")
        #expect(try known.loaded(Facts(items: 1)) == .end(truncated: false))
        var forgotten = machine()
        #expect(forgotten.failed(RunFailure(.refused, "no", status: 403)) == .fail)
        #expect(forgotten.failed(Self.gone) == .restart)
        forgotten.restart()
        #expect(forgotten.first.source.url == Self.url)
        #expect(forgotten.failed(Self.gone) == .fail)
        var later = machine()
        _ = try later.loaded(Facts(items: 1, next: "2"))
        #expect(later.failed(Self.gone) == .restart)
        later.restart()
        #expect(later.first.source.url == Self.url)
    }

    @Test("A bookmark's text is parsed to the same bookmark; other text is invalid")
    func bookmarkText() {
        let bookmark = PageBookmark(
            page: 3, items: 40, url: "https://a.example/?c=ü b", host: "a.example", isAtHome: true,
            seen: [0, .max, 17])
        #expect(PageBookmark(bookmark.description) == bookmark)
        var away = bookmark
        away.isAtHome = false
        away.seen = []
        #expect(PageBookmark(away.description) == away)
        for wrong in [
            "", "3 4 home\nh\nu", "1 4 home\nh\nu\n", "3 -1 home\nh\nu\n", "3 4 there\nh\nu\n", "3 4 home\nh\n\n",
            "3 4 home\nh\nu\n!", "x 4 home\nh\nu\n",
        ] {
            #expect(PageBookmark(wrong) == nil, "\(wrong)")
        }
    }

    @Test("At the limit on pages a set ends: truncated if more would follow, complete if not")
    func limit() throws {
        var machine = machine(.link, max: 2)
        #expect(url(try machine.loaded(links("/2"))) != nil)
        var other = machine
        #expect(try machine.loaded(links("/3")) == .end(truncated: true))
        #expect(try other.loaded(Facts(items: 1)) == .end(truncated: false))
    }

    @Test("A page that leads back to an earlier page is a failure that names both pages and the rule")
    func loops() throws {
        var byLink = machine(.link)
        #expect(url(try byLink.loaded(links("/2"))) != nil)
        #expect(url(try byLink.loaded(links("/3"))) != nil)
        let toSecond = failure { () throws(RunFailure) in try byLink.loaded(links("/2")) }
        #expect(
            toSecond?.message
                == "page 3 leads back to page 2 by its link to the next one: the set has no end and is not "
                + "kept")
        var itself = machine(.url(".next"))
        let toFirst = failure { () throws(RunFailure) in try itself.loaded(Facts(items: 1, next: Self.url)) }
        #expect(toFirst?.message.hasPrefix("page 1 leads back to page 1 by the URL of 'pages.next.url':") == true)

        var byCursor = machine(.cursor(CursorRule(".c", parameter: "c")))
        let long = "a\u{1B}" + String(repeating: "x", count: 200)
        #expect(url(try byCursor.loaded(Facts(items: 1, next: long))) != nil)
        let again = failure { () throws(RunFailure) in try byCursor.loaded(Facts(items: 1, next: long)) }
        let shown = "a%1B" + String(repeating: "x", count: PageMachine.shownCursor - 2)
        #expect(again?.message.hasPrefix("page 2 leads back to page 2 by 'c', '\(shown)'…: ") == true)
    }

    @Test("A URL that is too long is a failure; the longest allowed URL is not")
    func longURL() throws {
        let room = URLTemplate.maximumLength - (Self.url + "&c=").utf8.count
        var machine = machine(.cursor(CursorRule(".c", parameter: "c")))
        let most = String(repeating: "x", count: room)
        #expect(url(try machine.loaded(Facts(items: 1, next: most)))?.utf8.count == URLTemplate.maximumLength)
        let failure = failure { () throws(RunFailure) in try machine.loaded(Facts(items: 1, next: most + "y")) }
        #expect(failure?.message == "page 2 names a next page whose URL is longer than 8000 bytes")
    }

    // MARK: Other origins

    @Test("A link to another origin is refused, with the key that allows it")
    func otherOrigin() {
        for target in ["https://b.example/2", "https://a.example:8443/2", "http://a.example/2"] {
            var machine = machine(.link)
            let failure = failure { () throws(RunFailure) in try machine.loaded(links(target)) }
            #expect(failure?.kind == .content)
            #expect(failure?.message.contains("another origin than its own, https://a.example") == true)
            #expect(failure?.message.hasSuffix("pages.same-origin: false") == true)
        }
    }

    @Test("A link that is not an HTTP URL is refused")
    func noHTTP() {
        var machine = machine(.url(".next"), sameOrigin: false)
        let failure = failure { () throws(RunFailure) in try machine.loaded(Facts(items: 1, next: "file:///etc/passwd"))
        }
        #expect(failure?.message == "page 1 names a next page that is not an http or https URL")
    }

    @Test(
        "Where other origins are allowed, they get no header of the source, and neither does its own origin after them")
    func withheldHeaders() throws {
        var machine = machine(.link, sameOrigin: false)
        guard case .load(let second) = try machine.loaded(links("/2")),
            case .load(let third) = try machine.loaded(links("https://b.example/3")),
            case .load(let fourth) = try machine.loaded(links("https://a.example/4"))
        else {
            Issue.record("it ended")
            return
        }
        #expect(second.source.headers == [HTTPHeader("X-Own", "1")])
        #expect(third.source.headers == [])
        #expect(third.source.host == "b.example")
        #expect(fourth.source.headers == [])
        let failure = failure { () throws(RunFailure) in try machine.loaded(links("http://a.example/5")) }
        #expect(failure?.message.contains("unencrypted") == true)
    }

    @Test("After a redirect to another origin, relative links are at that origin, and get no header of the source")
    func redirected() throws {
        var machine = machine(.link)
        guard case .load(let second) = try machine.loaded(links("/2", location: "https://b.example/1")) else {
            Issue.record("it ended")
            return
        }
        #expect(second.source.url == "https://b.example/2")
        #expect(second.source.headers == [])
        let failure = failure { () throws(RunFailure) in
            try machine.loaded(links("https://a.example/3", location: "https://b.example/2"))
        }
        #expect(failure?.message.contains("another origin") == true)
    }

    // MARK: Failures

    static let lost = RunFailure(.connection, "no route")
    static let gone = RunFailure(.refused, "gone", status: 410)

    @Test("The first page's failure is the run's")
    func firstFails() {
        var machine = machine(.link)
        #expect(machine.failed(Self.lost) == .fail)
        #expect(machine.failed(Self.gone) == .fail)
    }

    @Test(
        "A later page is retried a limited number of times, with growing random waits; a loaded page resets the count")
    func retries() throws {
        var machine = machine(.link)
        #expect(url(try machine.loaded(links("/2"))) != nil)
        func isAgain(_ after: PageMachine.AfterFailure, upTo limit: Duration) -> Bool {
            if case .again(let wait) = after { .zero <= wait && wait <= limit } else { false }
        }
        for round in 0..<2 {
            for limit in [1, 2, 4] { #expect(isAgain(machine.failed(Self.lost), upTo: .seconds(limit))) }
            if round == 0 { #expect(url(try machine.loaded(links("/3"))) != nil) }
        }
        #expect(machine.failed(RunFailure(.transient, "503")) == .fail)
    }

    @Test("A page is awaited for at most a minute, however slowly whole runs are retried")
    func pauses() throws {
        var machine = machine(.link, retry: RetryPolicy(from: .seconds(86400), to: .seconds(86400)))
        #expect(url(try machine.loaded(links("/2"))) != nil)
        for _ in 1...PageMachine.retryLimit {
            let after = machine.failed(Self.lost)
            guard case .again(let wait) = after else {
                Issue.record("\(after)")
                return
            }
            #expect(wait <= .seconds(60))
        }
    }

    @Test("A short Retry-After is awaited within the run; a longer one fails the run")
    func retryAfter() throws {
        var machine = machine(.link)
        #expect(url(try machine.loaded(links("/2"))) != nil)
        func busy(_ seconds: Int) -> RunFailure { RunFailure(.transient, "503", retryAfter: .seconds(seconds)) }
        #expect(machine.failed(busy(60)) == .again(after: .seconds(60)))
        #expect(machine.failed(busy(61)) == .fail)
    }

    @Test(
        "A failure that a retry cannot change fails the run",
        arguments: [RunFailure.Kind.refused, .content, .local, .certificateDate, .deadline])
    func hopeless(kind: RunFailure.Kind) throws {
        var machine = machine(.link)
        #expect(url(try machine.loaded(links("/2"))) != nil)
        #expect(machine.failed(RunFailure(kind, "no")) == .fail)
    }

    @Test("If a page is gone (410), the set begins again, once; earlier URLs are dropped")
    func restart() throws {
        var machine = machine(.offset(parameter: "from", PageSize(2)), max: 3)
        let first = machine.first
        #expect(url(try machine.loaded(Facts(items: 2))) == Self.url + "&from=2")
        #expect(machine.failed(Self.gone) == .restart)
        machine.restart()
        #expect(machine.first == first)
        #expect(url(try machine.loaded(Facts(items: 2))) == Self.url + "&from=2")
        #expect(url(try machine.loaded(Facts(items: 2))) == Self.url + "&from=4")
        #expect(machine.failed(Self.gone) == .fail)
        #expect(try machine.loaded(Facts(items: 2)) == .end(truncated: true))
    }

    @Test("The status for a page after the last one ends only a counted set")
    func pastEnd() throws {
        let refused = RunFailure(.refused, "no such page", status: 400)
        var counted = machine(.page(parameter: "page", first: 1, PageSize(1, pastEnd: 400)))
        #expect(counted.failed(refused) == .fail)
        #expect(url(try counted.loaded(Facts(items: 1))) != nil)
        #expect(counted.failed(RunFailure(.refused, "forbidden", status: 403)) == .fail)
        #expect(counted.failed(refused) == .end)
        var other = machine(.page(parameter: "page", first: 1, PageSize(1)))
        #expect(url(try other.loaded(Facts(items: 1))) != nil)
        #expect(other.failed(refused) == .fail)
    }
}
