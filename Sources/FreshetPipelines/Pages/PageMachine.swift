/// Which page of a set comes next, and what becomes of one that fails.
///
/// It grows by one number a page, with which it knows where it was. Everything else of a page is the caller's.
struct PageMachine: Sendable {
    /// One page to ask for.
    struct Request: Hashable, Sendable {
        /// Counted from 1, a page that comes again after a restart of the set too.
        var page: Int
        var source: HTTPSource
    }

    /// What a page said of the next one.
    struct Facts: Hashable, Sendable {
        /// How many items it has.
        var items: Int
        /// The values of its `Link` fields.
        var links: [String] = []
        /// The URL that answered; nil: the one that was asked.
        var location: String?
        /// What the rule's program gave: a URL, a cursor, the last item's key; nil: nothing.
        var next: String?
        /// Whether more follow; nil: nobody was asked.
        var more: Bool?
        /// How many items, or pages, there are in all; nil: not known.
        var total: Int?
    }

    enum Step: Hashable, Sendable {
        case load(Request)
        /// As many are there as were asked for, and this is where more follow.
        case rest(PageBookmark)
        /// - Parameter truncated: more would follow, but for the limit on pages.
        case end(truncated: Bool)
    }

    enum AfterFailure: Hashable, Sendable {
        /// Ask for the same page once more, after so long.
        case again(after: Duration)
        /// Forget all pages and begin with the first one: ``restart()``.
        case restart
        /// There is no such page: the one before was the last.
        case end
        case fail
    }

    /// How often a page after the first is asked for again before the run fails. The first one's failure is the run's,
    /// which has a back-off of its own.
    static let retryLimit = 3
    /// The longest wait within a run, which its deadline limits as a whole: what `retry` allows beyond is for whole
    /// runs. A longer `Retry-After` ends the run, and is heeded by the pipeline.
    static let longestPause: Duration = .seconds(60)
    /// So much of a cursor is shown.
    static let shownCursor = 60

    private let pages: PagesDefinition
    private let source: HTTPSource
    private let retry: RetryPolicy
    private let resolve: @Sendable (_ reference: String, _ base: String) -> WebAddress?
    private let home: WebAddress?
    private var jitter: Jitter
    private var hasRestarted = false
    /// Asks for the changes alone.
    private var token: String?
    /// How many pages are asked for without a pause.
    private let load: PageLoad

    private var request: Request
    /// Items so far.
    private var items = 0
    /// Numbers of the URLs that were asked, in the order of their pages: a cursor or a number is part of the URL.
    private var seen: [UInt64] = []
    private var known: [UInt64: Int] = [:]
    /// Failures in a row.
    private var failures = 0
    /// The present request carries what is configured beside the URL: header fields, a client certificate, a socket. Once
    /// the pages have led to another origin nothing of that goes along any more: who asks with secrets is not told where
    /// by others.
    private var isAtHome = true

    /// - Parameters:
    ///   - source: the first page.
    ///   - bookmark: goes on from here, by one page; nil: begins with the first one, and loads as many as are configured.
    ///   - token: of the last page of the set before; nil: all of it is asked for.
    ///   - retry: the waits between attempts.
    ///   - resolve: the URL that a reference means at a URL.
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
        // One that has to be begun anew has as many pages as it would have had.
        load = bookmark.map { .first($0.page) } ?? pages.load
        request = Request(page: 1, source: source)
        if let bookmark { resume(bookmark) } else { begin() }
    }

    /// The page to begin with.
    var first: Request { request }

    /// Begins anew, for good: a set is restarted once.
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
        _ = note(request)
    }

    private mutating func resume(_ bookmark: PageBookmark) {
        items = bookmark.items
        isAtHome = bookmark.isAtHome
        seen = bookmark.seen
        known = Dictionary(zip(seen, 1...)) { first, _ in first }
        request = Request(page: bookmark.page, source: source(at: bookmark.url, host: bookmark.host))
        _ = note(request)
    }

    // MARK: A page

    /// A page is there.
    mutating func loaded(_ facts: Facts) throws(RunFailure) -> Step {
        failures = 0
        items += facts.items
        guard let next = try source(after: facts) else { return .end(truncated: false) }
        // A set that ends at its limit because it was to have no more is not cut short.
        guard request.page < pages.max else { return .end(truncated: load == .all || load != pages.load) }
        let isTooLong = next.url.utf8.count > URLTemplate.maximumLength
        if case .first(let count) = load, request.page >= count {
            // Nobody asks for what cannot be asked for, or for what leads back: then this was the last one.
            guard !isTooLong, known[PageBookmark.number(of: next.url)] == nil else { return .end(truncated: false) }
            return .rest(
                PageBookmark(
                    page: request.page + 1, items: items, url: next.url, host: next.host, isAtHome: isAtHome, seen: seen
                ))
        }
        guard !isTooLong else {
            throw failure("names a next page by more than the \(URLTemplate.maximumLength) bytes that a URL may have")
        }
        let following = Request(page: request.page + 1, source: next)
        if let earlier = note(following) { throw loop(to: earlier, facts) }
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
            guard facts.items > 0, goesOn(size, facts, counted: items) else { return nil }
            return setting(parameter, to: String(items))
        case .page(let parameter, let first, let size):
            guard goesOn(size, facts, counted: request.page) else { return nil }
            return setting(parameter, to: String(first + request.page))
        }
    }

    private func goesOn(_ size: PageSize, _ facts: Facts, counted: Int) -> Bool {
        if let total = facts.total { return counted < total }
        return facts.items >= max(1, size.size ?? 1)
    }

    private func with(_ rule: CursorRule, _ facts: Facts) throws(RunFailure) -> HTTPSource? {
        guard let cursor = facts.next else {
            guard facts.more == true else { return nil }
            throw failure("says by 'pages.next.more' that more follow, but not where")
        }
        return setting(rule.parameter, to: cursor)
    }

    private func setting(_ parameter: String, to value: String) -> HTTPSource {
        var next = request.source
        next.url = QueryParameter.setting(parameter, to: value, in: next.url)
        return next
    }

    /// Where a link leads. The page that names it is at the URL that answered, after redirects.
    private mutating func followed(_ reference: String, from facts: Facts) throws(RunFailure) -> HTTPSource {
        let base = facts.location ?? request.source.url
        guard let here = resolve(base, base), let there = resolve(reference, base) else {
            throw failure("names a next page that is no http or https URL")
        }
        let staysHome = isAtHome && here.origin == home?.origin && there.origin == home?.origin
        // As for redirects: the origin is not reached by its name, and so no other is.
        guard staysHome || source.unixSocket == nil else {
            throw failure(
                "is asked for through a socket and names a next page at \(there.origin), another origin; not followed")
        }
        guard !pages.sameOrigin || here.origin == there.origin else {
            throw failure(
                "names a next page at \(there.origin), another origin than its own, \(here.origin); "
                    + "to follow such links, without the headers of the source: pages.same-origin: false")
        }
        // As for redirects: what was asked for encrypted is not asked for in the clear.
        guard !here.origin.hasPrefix("https:") || there.origin.hasPrefix("https:") else {
            throw failure(
                "is at \(here.origin) and names a next page that would be asked for unencrypted, \(there.origin)")
        }
        isAtHome = staysHome
        return source(at: there.url, host: there.host)
    }

    /// The request for a page after the first. What is meant for the source's own origin, all but the URL, does not leave
    /// it. A URL that a page names is asked by GET: what the source asks stands in the URL by then.
    private func source(at url: String, host: String) -> HTTPSource {
        guard isAtHome else { return HTTPSource(url: url, host: host) }
        var next = source
        next.url = url
        next.host = host
        switch pages.next {
        case .link, .url: next.method = .get
        case .cursor, .lastKey, .offset, .page: break
        }
        return next
    }

    /// The source's URL, with what the rule says of a first page.
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

    // MARK: What was seen

    /// The page that had the URL before, if one had.
    private mutating func note(_ request: Request) -> Int? {
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
        return failure("leads back to page \(earlier) \(how): such a set has no end, and nothing of it is kept")
    }

    /// As it stands in the URL, so that nothing in it acts on a terminal.
    private static func shown(_ cursor: String) -> String {
        var bytes: [UInt8] = []
        URLTemplate.append(String(cursor.prefix(shownCursor)), to: &bytes)
        return "'\(String(decoding: bytes, as: UTF8.self))'" + (cursor.count > shownCursor ? "…" : "")
    }

    private func failure(_ what: String) -> RunFailure { RunFailure(.content, "page \(request.page) \(what)") }

    // MARK: A page that fails

    /// The present page could not be loaded.
    mutating func failed(_ failure: RunFailure) -> AfterFailure {
        guard request.page > 1 else {
            // The origin does not know the changes since then any more.
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
        // Another attempt would change nothing.
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
