import FreshetModel

/// Decides which page of a set comes next, and what follows when a page fails.
///
/// Its memory grows by one number per page, a hash of the URL. The caller keeps all other data of a page.
struct PageMachine: Sendable {
    /// The request for one page.
    struct Request: Hashable, Sendable {
        /// The page's number, counted from 1, also after a restart of the set.
        var page: Int
        var source: HTTPSource
    }

    /// The data of a page that decides about the next one.
    struct Facts: Hashable, Sendable {
        /// The number of items.
        var items: Int
        /// The values of its `Link` fields.
        var links: [String] = []
        /// The URL that answered; nil: the requested URL.
        var location: String?
        /// The output of the rule's program: a URL, a cursor, the last item's key; nil: no output.
        var next: String?
        /// Whether more pages follow; nil: not known.
        var more: Bool?
        /// The total number of items, or pages; nil: not known.
        var total: Int?
    }

    enum Step: Hashable, Sendable {
        case load(Request)
        /// The requested number of pages is loaded; the bookmark says where more follow.
        case rest(PageBookmark)
        /// - Parameter truncated: the limit on pages ended the set although more follow.
        case end(truncated: Bool)
    }

    enum AfterFailure: Hashable, Sendable {
        /// Request the same page again, after this time.
        case again(after: Duration)
        /// Drop all pages and begin with the first one: ``restart()``.
        case restart
        /// There is no such page: the previous page was the last.
        case end
        case fail
    }

    /// How often a page after the first is retried before the run fails. A failure of the first page is a failure of
    /// the run, which has its own backoff.
    static let retryLimit = 3
    /// The longest wait within a run, which is limited by the run's deadline: longer waits of `retry` are for whole
    /// runs. A longer `Retry-After` ends the run, and the pipeline honours it.
    static let longestPause: Duration = .seconds(60)
    /// The number of characters of a cursor in a message.
    static let shownCursor = 60

    private let pages: PagesDefinition
    private let source: HTTPSource
    private let retry: RetryPolicy
    private let resolve: @Sendable (_ reference: String, _ base: String) -> WebAddress?
    private let home: WebAddress?
    private var jitter: Jitter
    private var hasRestarted = false
    /// The token that requests only the changes.
    private var token: String?
    /// How many pages are loaded.
    private let load: PageLoad

    private var request: Request
    /// The number of items so far.
    private var items = 0
    /// Hashes of the requested URLs, in the order of their pages; a cursor or page number is part of the URL.
    private var seen: [UInt64] = []
    private var known: [UInt64: Int] = [:]
    /// Consecutive failures.
    private var failures = 0
    /// Whether the current request carries the configuration beside the URL: header fields, a client certificate, a
    /// socket. Once the pages have led to another origin, no request carries them any more, so that no origin decides
    /// where secrets are sent.
    private var isAtHome = true

    /// - Parameters:
    ///   - source: the first page.
    ///   - bookmark: continues here, by one page; nil: begins with the first page and loads as many as are configured.
    ///   - token: the token of the previous set's last page; nil: everything is requested.
    ///   - retry: the waits between attempts.
    ///   - resolve: resolves a reference against a base URL.
    init(
        _ pages: PagesDefinition, of source: HTTPSource, from bookmark: PageBookmark? = nil, token: String? = nil,
        retry: RetryPolicy, jitter: Jitter,
        resolve: @escaping @Sendable (_ reference: String, _ base: String) -> WebAddress?
    ) {
        self.pages = pages
        self.source = source
        self.retry = retry
        self.jitter = jitter
        self.resolve = resolve
        home = resolve(source.url, source.url)
        self.token = token
        // After a restart the set has as many pages as it would have had.
        load = bookmark.map { .first($0.page) } ?? pages.load
        request = Request(page: 1, source: source)
        if let bookmark { resume(bookmark) } else { begin() }
    }

    /// The request for the first page to load.
    var first: Request { request }

    /// Begins again with the first page. A set is restarted at most once.
    mutating func restart() {
        hasRestarted = true
        token = nil
        begin()
    }

    private mutating func begin() {
        items = 0
        seen = []
        known = [:]
        failures = 0
        isAtHome = true
        request = Request(page: 1, source: source)
        request.source.url = firstURL
        if let token, let sync = pages.sync {
            request.source.url = QueryParameter.setting(sync.parameter, to: token, in: request.source.url)
        }
        _ = recordURL(request)
    }

    /// The place at which the load of a set can go on: the current page, and what is known of the pages before it.
    struct Position: Hashable, Sendable {
        /// The number of the current page.
        fileprivate(set) var page: Int
        /// Of the request only this is kept: the rest, such as the proxy, is that of the definition that goes on.
        fileprivate var url: String
        fileprivate var host: String
        fileprivate var items: Int
        fileprivate var seen: [UInt64]
        fileprivate var isAtHome: Bool
    }

    var position: Position {
        Position(
            page: request.page, url: request.source.url, host: request.source.host, items: items, seen: seen,
            isAtHome: isAtHome)
    }

    /// Goes on at a page of an earlier load of the same set.
    ///
    /// - Returns: the request for the page.
    mutating func goOn(at position: Position) -> Request {
        failures = 0
        items = position.items
        seen = position.seen
        known = Dictionary(zip(seen, 1...)) { first, _ in first }
        isAtHome = position.isAtHome
        request = Request(page: position.page, source: source(at: position.url, host: position.host))
        return request
    }

    private mutating func resume(_ bookmark: PageBookmark) {
        items = bookmark.items
        isAtHome = bookmark.isAtHome
        seen = bookmark.seen
        known = Dictionary(zip(seen, 1...)) { first, _ in first }
        request = Request(page: bookmark.page, source: source(at: bookmark.url, host: bookmark.host))
        _ = recordURL(request)
    }

    // MARK: A page

    /// A page was loaded.
    mutating func loaded(_ facts: Facts) throws(RunFailure) -> Step {
        failures = 0
        items += facts.items
        guard let next = try source(after: facts) else { return .end(truncated: false) }
        // A set that ends because no more pages were requested is not truncated.
        guard request.page < pages.max else { return .end(truncated: load == .all || load != pages.load) }
        let isTooLong = next.url.utf8.count > URLTemplate.maximumLength
        if case .first(let count) = load, request.page >= count {
            // If the next page cannot be requested, or leads back, this page was the last one.
            guard !isTooLong, known[PageBookmark.number(of: next.url)] == nil else { return .end(truncated: false) }
            return .rest(
                PageBookmark(
                    page: request.page + 1, items: items, url: next.url, host: next.host, isAtHome: isAtHome, seen: seen
                ))
        }
        guard !isTooLong else {
            throw failure("names a next page whose URL is longer than \(URLTemplate.maximumLength) bytes")
        }
        let following = Request(page: request.page + 1, source: next)
        if let earlier = recordURL(following) { throw loop(to: earlier, facts) }
        request = following
        return .load(following)
    }

    private mutating func source(after facts: Facts) throws(RunFailure) -> HTTPSource? {
        switch pages.next {
        case .link:
            guard let reference = LinkField.target(of: "next", in: facts.links) else { return nil }
            return try followed(reference, from: facts)
        case .url:
            guard let reference = facts.next else { return nil }
            return try followed(reference, from: facts)
        case .cursor(let rule):
            guard facts.more ?? true else { return nil }
            return try with(rule, facts)
        case .lastKey(let rule, let size):
            if let more = facts.more { return more ? try with(rule, facts) : nil }
            guard facts.items >= max(1, size.size ?? 1) else { return nil }
            guard facts.next != nil else { throw failure("has a last item without a key by 'pages.next.last-key'") }
            return try with(rule, facts)
        case .offset(let parameter, let size):
            guard facts.items > 0, hasNext(size, facts, counted: items) else { return nil }
            return setting(parameter, to: String(items))
        case .page(let parameter, let first, let size):
            guard hasNext(size, facts, counted: request.page) else { return nil }
            return setting(parameter, to: String(first + request.page))
        }
    }

    private func hasNext(_ size: PageSize, _ facts: Facts, counted: Int) -> Bool {
        if let total = facts.total { return counted < total }
        return facts.items >= max(1, size.size ?? 1)
    }

    private func with(_ rule: CursorRule, _ facts: Facts) throws(RunFailure) -> HTTPSource? {
        guard let cursor = facts.next else {
            guard facts.more == true else { return nil }
            throw failure("says by 'pages.next.more' that more pages follow, but not where they are")
        }
        return setting(rule.parameter, to: cursor)
    }

    private func setting(_ parameter: String, to value: String) -> HTTPSource {
        var next = request.source
        next.url = QueryParameter.setting(parameter, to: value, in: next.url)
        return next
    }

    /// The request for a link's target. Its base is the URL that answered, after redirects.
    private mutating func followed(_ reference: String, from facts: Facts) throws(RunFailure) -> HTTPSource {
        let base = facts.location ?? request.source.url
        guard let here = resolve(base, base), let there = resolve(reference, base) else {
            throw failure("names a next page that is not an http or https URL")
        }
        let staysHome = isAtHome && here.origin == home?.origin && there.origin == home?.origin
        // As for redirects: a socket stands for its origin, so the request does not go to another one.
        guard staysHome || source.unixSocket == nil else {
            throw failure(
                "is fetched through a socket and names a next page at \(there.origin), another origin; not followed")
        }
        guard !pages.sameOrigin || here.origin == there.origin else {
            throw failure(
                "names a next page at \(there.origin), another origin than its own, \(here.origin); "
                    + "to follow such links, without the headers of the source: pages.same-origin: false")
        }
        // As for redirects: an encrypted request does not lead to an unencrypted one.
        guard !here.origin.hasPrefix("https:") || there.origin.hasPrefix("https:") else {
            throw failure(
                "is at \(here.origin) and names an unencrypted next page, \(there.origin)")
        }
        isAtHome = staysHome
        return source(at: there.url, host: there.host)
    }

    /// The request for a page after the first. Header fields, certificates, the socket and the mirrors are for the
    /// source's own origin only; the proxy and the limits on redirects and bodies are for all pages. A URL that a page
    /// names is requested by GET: it contains the query of the source.
    private func source(at url: String, host: String) -> HTTPSource {
        guard isAtHome else {
            var away = HTTPSource(url: url, host: host)
            away.proxy = source.proxy
            away.redirects = source.redirects
            away.allowsUnframed = source.allowsUnframed
            return away
        }
        var next = source
        next.url = url
        next.host = host
        switch pages.next {
        case .link, .url: next.method = .get
        case .cursor, .lastKey, .offset, .page: break
        }
        return next
    }

    /// The source's URL, with the rule's parameters for the first page.
    private var firstURL: String {
        func setting(_ size: PageSize) -> String {
            guard let parameter = size.parameter, let count = size.size else { return source.url }
            return QueryParameter.setting(parameter, to: String(count), in: source.url)
        }
        switch pages.next {
        case .link, .url, .cursor: return source.url
        case .lastKey(_, let size): return setting(size)
        case .offset(let parameter, let size):
            return QueryParameter.setting(parameter, to: "0", in: setting(size))
        case .page(let parameter, let first, let size):
            return QueryParameter.setting(parameter, to: String(first), in: setting(size))
        }
    }

    // MARK: Requested pages

    /// Records a request's URL. Returns the number of an earlier page with the same URL, if there is one.
    private mutating func recordURL(_ request: Request) -> Int? {
        let number = PageBookmark.number(of: request.source.url)
        if let earlier = known[number] { return earlier }
        known[number] = request.page
        seen.append(number)
        return nil
    }

    private func loop(to earlier: Int, _ facts: Facts) -> RunFailure {
        let how =
            switch pages.next {
            case .link: "by its link to the next one"
            case .url: "by the URL of 'pages.next.url'"
            case .cursor(let rule), .lastKey(let rule, _):
                "by '\(rule.parameter)', \(Self.shown(facts.next ?? ""))"
            case .offset(let parameter, _), .page(let parameter, _, _): "by '\(parameter)'"
            }
        return failure("leads back to page \(earlier) \(how): the set has no end and is not kept")
    }

    /// The cursor percent-encoded as in the URL, so that it has no terminal control sequences.
    private static func shown(_ cursor: String) -> String {
        var bytes: [UInt8] = []
        URLTemplate.append(String(cursor.prefix(shownCursor)), to: &bytes)
        return "'\(String(decoding: bytes, as: UTF8.self))'" + (cursor.count > shownCursor ? "…" : "")
    }

    private func failure(_ what: String) -> RunFailure { RunFailure(.content, "page \(request.page) \(what)") }

    // MARK: Failed pages

    /// The current page could not be loaded.
    mutating func failed(_ failure: RunFailure) -> AfterFailure {
        guard request.page > 1 else {
            // The origin no longer has the changes since the token.
            return failure.status == 410 && token != nil ? .restart : .fail
        }
        switch (failure.kind, failure.status) {
        case (_, let status?) where status == pastEnd: return .end
        case (_, 410): return hasRestarted ? .fail : .restart
        case (.connection, _), (.transient, _):
            failures += 1
            let pause = failure.retryAfter ?? .zero
            guard failures <= Self.retryLimit, pause <= Self.longestPause else { return .fail }
            let ceiling = min(Backoff.ceiling(after: failures, policy: retry), Self.longestPause)
            return .again(after: max(pause, jitter.duration(upTo: ceiling)))
        // A retry has the same result.
        case (.certificateDate, _), (.refused, _), (.content, _), (.local, _), (.absent, _), (.budget, _),
            (.deadline, _):
            return .fail
        }
    }

    private var pastEnd: Int? {
        switch pages.next {
        case .offset(_, let size), .page(_, _, let size): size.pastEnd
        case .link, .url, .cursor, .lastKey: nil
        }
    }
}
