import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

/// An origin of pages: the answers of each URL in order; the last one is repeated forever.
private final class ScriptedPages: Fetching {
    enum Answer: Sendable {
        /// The body has the program's outputs, one per line: see ``ScriptedProgram``.
        case page(
            items: String, count: Int, next: String? = nil, links: [String] = [], type: String? = nil,
            token: String? = nil)
        case fails(RunFailure)
        case hangs
    }

    private struct State {
        var answers: [String: [Answer]]
        var asked: [String] = []
        var open = 0
    }
    private let state: Lock<State>
    private let clock: ScriptedClock

    init(_ answers: [String: [Answer]], clock: ScriptedClock) {
        state = Lock(State(answers: answers))
        self.clock = clock
    }

    /// The requested paths.
    var asked: [String] { state.withLock { $0.asked } }
    var open: Int { state.withLock { $0.open } }

    func resolve(_ reference: String, against base: String) -> WebAddress? {
        ScriptedURLs.resolve(reference, against: base)
    }

    func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        guard case .http(let source) = request.source else { throw .failed(RunFailure(.local, "no URL")) }
        request.asked()
        let path = String(source.url.dropFirst("https://a.example".count))
        let answer = state.withLock { state -> Answer? in
            state.asked.append(path)
            state.open += 1
            let answer = state.answers[path]?.first
            if let answers = state.answers[path], answers.count > 1 { state.answers[path]?.removeFirst() }
            return answer
        }
        defer { state.withLock { $0.open -= 1 } }
        switch answer {
        case .page(let items, let count, let next, let links, let type, let token):
            var body = "\(count)\n\(items)\n\(next.map { "=" + $0 } ?? "-")\n-\n-"
            if let token { body += "\n\(token.isEmpty ? "-" : "=" + token)" }
            request.progress(UInt64(body.utf8.count))
            return .content(
                FetchedContent(
                    bytes: Array(body.utf8), mediaType: type, links: links.map { "<\($0)>; rel=next" },
                    location: source.url))
        case .fails(let failure): throw .failed(failure)
        case .hangs:
            try? await clock.manual.sleep(for: .seconds(1_000_000))
            throw .cancelled
        case nil: throw .failed(RunFailure(.refused, "the origin answered 404", status: 404))
        }
    }
}

/// A page's outputs are the lines of its body; a merge is shown before the items.
private struct ScriptedProgram: Transforming {
    func transform(
        _ input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8] {
        Array("merged:".utf8) + input
    }

    func values(
        of input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]] {
        input.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
    }

    func render(_ input: [UInt8], by template: TemplateDefinition) async throws(FetchError) -> [UInt8] { input }

    func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int? { nil }

    func holds(
        _ predicate: String, for input: [UInt8], in format: ContentFormat
    ) async throws(FetchError) -> Bool { true }
}

@Suite("Pages: loading a set")
struct PageLoaderTests {
    /// A set that is being loaded.
    private final class Loading: Sendable {
        let executor = SerialTestExecutor()
        let clock: ScriptedClock
        let origin: ScriptedPages
        private let outcome = Lock<Result<PageSet, FetchError>?>(nil)
        private let progress = RunProgress()
        private let task = Lock<Task<Void, Never>?>(nil)

        init(
            _ answers: [String: [ScriptedPages.Answer]], _ pages: PagesDefinition = PagesDefinition(next: .link),
            check: CheckRules = CheckRules(), retry: RetryPolicy = RetryPolicy(), after earlier: StoredPages? = nil,
            interrupted: InterruptedSets? = nil
        ) throws {
            clock = ScriptedClock(executor: executor)
            origin = ScriptedPages(answers, clock: clock)
            let world = EngineDependencies(
                fetcher: origin, transformer: ScriptedProgram(), store: MemoryStore(clock: clock), clock: clock,
                requestLimiter: RequestLimiter(RequestLimiter.Limits(total: 1, perOrigin: 1)))
            let loader = PageLoader(
                pages: pages, source: HTTPSource(url: "https://a.example/1", host: "a.example"), world: world,
                check: check, retry: retry, jitter: Jitter(seed: 3), epoch: 1, progress: progress,
                earlier: earlier, interrupted: interrupted, key: "set")
            task.withLock {
                $0 = Task(executorPreference: executor) { [self] in
                    let result: Result<PageSet, FetchError>
                    do throws(FetchError) {
                        result = .success(try await loader.load())
                    } catch {
                        result = .failure(error)
                    }
                    outcome.withLock { $0 = result }
                }
            }
            try executor.runUntilIdle()
        }

        var result: Result<PageSet, FetchError>? { outcome.withLock { $0 } }
        var pageSet: PageSet? { try? result?.get() }
        var text: String? { pageSet.map { String(decoding: $0.items, as: UTF8.self) } }
        var loaded: LoadProgress { progress.loaded }
        var asked: Int { progress.requests }
        var failure: RunFailure? {
            guard case .failure(.failed(let failure)) = result else { return nil }
            return failure
        }

        func advance(_ seconds: Int) throws { try clock.manual.advance(by: .seconds(seconds), draining: executor) }
        func cancel() throws {
            task.withLock { $0 }?.cancel()
            try executor.runUntilIdle()
        }
    }

    /// The answers of three pages, of which the third one is given.
    private static func three(_ third: ScriptedPages.Answer, first: String = "[1]") -> [String: [ScriptedPages.Answer]]
    {
        [
            "/1": [.page(items: first, count: 1, links: ["/2"])], "/2": [.page(items: "[2]", count: 1, links: ["/3"])],
            "/3": [third],
        ]
    }

    private static let last = ScriptedPages.Answer.page(items: "[3]", count: 1)

    @Test("after a page has failed, the next load asks for the first page and goes on at that page")
    func goesOnAtFailedPage() throws {
        let interrupted = InterruptedSets()
        let failed = try Loading(Self.three(.fails(RunFailure(.transient, "503"))), interrupted: interrupted)
        try failed.advance(300)
        #expect(failed.origin.asked == ["/1", "/2", "/3", "/3", "/3", "/3"] && failed.failure != nil)
        let again = try Loading(Self.three(.fails(RunFailure(.transient, "503"))), interrupted: interrupted)
        try again.advance(300)
        #expect(again.origin.asked == ["/1", "/3", "/3", "/3", "/3"])
        let next = try Loading(Self.three(Self.last), interrupted: interrupted)
        #expect(next.origin.asked == ["/1", "/3"] && next.text == "[1,2,3]\n" && next.pageSet?.pages == 3)
        #expect(next.loaded.pages == 3)
        let later = try Loading(Self.three(Self.last), interrupted: interrupted)
        #expect(later.origin.asked == ["/1", "/2", "/3"], "a complete set leaves nothing")
    }

    @Test("a cancelled load goes on; if the first page has changed, all pages are loaded")
    func otherFirstPage() throws {
        let interrupted = InterruptedSets()
        try Loading(Self.three(.hangs), interrupted: interrupted).cancel()
        let next = try Loading(Self.three(Self.last, first: "[0]"), interrupted: interrupted)
        #expect(next.origin.asked == ["/1", "/2", "/3"] && next.text == "[0,2,3]\n")
    }

    @Test("a failure of the first page keeps the pages for the next load")
    func firstPageFails() throws {
        let interrupted = InterruptedSets()
        try Loading(Self.three(.hangs), interrupted: interrupted).cancel()
        let failed = try Loading(["/1": [.fails(RunFailure(.connection, "refused"))]], interrupted: interrupted)
        #expect(failed.failure != nil)
        let next = try Loading(Self.three(Self.last), interrupted: interrupted)
        #expect(next.origin.asked == ["/1", "/3"] && next.text == "[1,2,3]\n")
    }

    @Test("a page that is refused or not valid leaves no pages")
    func refused() throws {
        for kind in [RunFailure.Kind.refused, .content] {
            let interrupted = InterruptedSets()
            let failed = try Loading(Self.three(.fails(RunFailure(kind, "no"))), interrupted: interrupted)
            #expect(failed.failure != nil)
            let next = try Loading(Self.three(Self.last), interrupted: interrupted)
            #expect(next.origin.asked == ["/1", "/2", "/3"])
        }
    }

    @Test("interrupted sets are kept for an hour, no page for longer than a day, and are bounded in number and size")
    func bounded() {
        let interrupted = InterruptedSets()
        let now = BootInstant.now
        let machine = PageMachine(
            PagesDefinition(next: .link), of: HTTPSource(url: "https://a.example/1", host: "a.example"),
            retry: RetryPolicy(), jitter: Jitter(seed: 1), resolve: ScriptedURLs.resolve)
        func keep(_ key: String, bytes: Int = 1, begun: Int? = nil, at seconds: Int) {
            let at = now.advanced(by: .seconds(seconds))
            let first = InterruptedSets.FirstPage(
                items: [], facts: PageMachine.Facts(items: 0), validators: Validators())
            interrupted.keep(
                InterruptedSets.InterruptedSet(
                    first: first, position: machine.position, items: Array(repeating: 0, count: bytes), count: 1,
                    begun: begun.map { now.advanced(by: .seconds($0)) } ?? at, confirmed: at), as: key, at: at)
        }
        keep("old", at: 0)
        #expect(interrupted.take("old", at: now.advanced(by: .seconds(3600))) == nil)
        keep("confirmed again", begun: 0, at: 86_300)
        #expect(interrupted.take("confirmed again", at: now.advanced(by: .seconds(86_399))) != nil)
        keep("confirmed again", begun: 0, at: 86_300)
        #expect(interrupted.take("confirmed again", at: now.advanced(by: .seconds(86_400))) == nil)
        for number in 0...InterruptedSets.mostSets { keep("\(number)", at: number) }
        #expect(interrupted.take("0", at: now) == nil)
        #expect(interrupted.take("1", at: now) != nil)
        keep("long", bytes: InterruptedSets.mostBytes, at: 100)
        #expect(interrupted.take("2", at: now) == nil && interrupted.take("long", at: now) != nil)
        keep("too long", bytes: InterruptedSets.mostBytes + 1, at: 101)
        #expect(interrupted.take("too long", at: now) == nil)
        keep("any", at: 102)
        interrupted.removeAll()
        #expect(interrupted.take("any", at: now) == nil)
    }

    @Test("Pages become one array, an empty page in the middle too; each request counts, and progress covers all pages")
    func set() throws {
        let loading = try Loading([
            "/1": [.page(items: "[1,2]", count: 2, links: ["/2"])],
            "/2": [.page(items: "[]", count: 0, links: ["/3"])],
            "/3": [.page(items: "[{\"a\":3}]", count: 1)],
        ])
        #expect(loading.text == "[1,2,{\"a\":3}]\n")
        #expect(loading.pageSet?.pages == 3 && loading.pageSet?.truncated == false)
        #expect(loading.asked == 3)
        let bytes = UInt64("2\n[1,2]\n-\n-\n-0\n[]\n-\n-\n-1\n[{\"a\":3}]\n-\n-\n-".utf8.count)
        #expect(loading.loaded == LoadProgress(bytes: bytes, pages: 3))
    }

    @Test("A set continues by one page, which is appended; it begins again if the page is gone")
    func goesOn() throws {
        let pages = PagesDefinition(next: .link, load: .first(1))
        let first = try Loading(["/1": [.page(items: "[1,2]", count: 2, links: ["/2"])]], pages)
        let set = try #require(first.pageSet)
        #expect(first.text == "[1,2]\n" && set.pages == 1)
        let earlier = StoredPages(items: set.items, count: set.pages, next: set.next)
        let second = try Loading(["/2": [.page(items: "[3]", count: 1, links: ["/3"])]], pages, after: earlier)
        #expect(second.text == "[1,2,3]\n")
        #expect(second.pageSet?.pages == 2 && second.pageSet?.next?.page == 3)
        #expect(second.origin.asked == ["/2"])
        #expect(second.loaded.pages == 1)
        // The first page had no items.
        let empty = StoredPages(items: Array("[]\n".utf8), count: 1, next: set.next)
        let last = try Loading(["/2": [.page(items: "[3]", count: 1)]], pages, after: empty)
        #expect(last.text == "[3]\n" && last.pageSet?.next == nil)
        let gone = try Loading(
            [
                "/1": [.page(items: "[7]", count: 1, links: ["/2"])],
                "/2": [
                    .fails(RunFailure(.refused, "gone", status: 410)), .page(items: "[8]", count: 1, links: ["/3"]),
                ],
            ], pages, after: earlier)
        #expect(gone.text == "[7,8]\n")
        #expect(gone.pageSet?.pages == 2 && gone.pageSet?.next?.page == 3)
        #expect(gone.origin.asked == ["/2", "/1", "/2"])
        let failing = try Loading(["/2": [.fails(RunFailure(.refused, "no", status: 403))]], pages, after: earlier)
        #expect(failing.failure?.message == "page 2: no")
    }

    @Test(
        "Changes are requested with the token of the last page, and merged; without a token everything is requested")
    func synchronizes() throws {
        let pages = PagesDefinition(next: .link, key: ".id", sync: SyncRule(".t", parameter: "since"))
        let all = try Loading(
            [
                "/1": [.page(items: "[1,2]", count: 2, links: ["/2"], token: "early")],
                "/2": [.page(items: "[3]", count: 1, token: "a")],
            ], pages)
        #expect(all.text == "merged:[1,2,3]\n")
        #expect(all.pageSet?.token == "a")
        let earlier = StoredPages(items: Array("[1,2,3]\n".utf8), count: 2, token: "a")
        let changes = try Loading(["/1?since=a": [.page(items: "[4]", count: 1, token: "b")]], pages, after: earlier)
        #expect(changes.text == "merged:[1,2,3,4]\n")
        #expect(changes.pageSet?.token == "b" && changes.pageSet?.pages == 1)
        let forgotten = try Loading(
            [
                "/1?since=a": [.fails(RunFailure(.refused, "gone", status: 410))],
                "/1": [.page(items: "[7]", count: 1, token: "")],
            ], pages, after: earlier)
        #expect(forgotten.text == "merged:[7]\n")
        #expect(forgotten.pageSet?.token == nil)
        #expect(forgotten.origin.asked == ["/1?since=a", "/1"])
        // A truncated set, and one whose token makes a URL too long.
        let short = try Loading(
            ["/1": [.page(items: "[1]", count: 1, links: ["/2"], token: "a")]],
            PagesDefinition(next: .link, key: ".id", max: 1, sync: SyncRule(".t", parameter: "since")))
        #expect(short.pageSet?.truncated == true && short.pageSet?.token == nil)
        let long = String(repeating: "x", count: URLTemplate.maximumLength)
        let tooLong = try Loading(["/1": [.page(items: "[1]", count: 1, token: long)]], pages)
        #expect(tooLong.text == "merged:[1]\n" && tooLong.pageSet?.token == nil)
    }

    @Test("A set without items is an empty array")
    func empty() throws {
        let loading = try Loading(["/1": [.page(items: "[]", count: 0)]])
        #expect(loading.text == "[]\n")
    }

    @Test("With a key all items are merged, once, at the end")
    func key() throws {
        let loading = try Loading(
            ["/1": [.page(items: "[1]", count: 1, links: ["/2"])], "/2": [.page(items: "[2]", count: 1)]],
            PagesDefinition(next: .link, key: ".id"))
        #expect(loading.text == "merged:[1,2]\n")
    }

    @Test("A set that reached the limit on pages is marked")
    func truncated() throws {
        let loading = try Loading(
            [
                "/1": [.page(items: "[1]", count: 1, links: ["/2"])],
                "/2": [.page(items: "[2]", count: 1, links: ["/3"])],
            ],
            PagesDefinition(next: .link, max: 2))
        #expect(loading.text == "[1,2]\n")
        #expect(loading.pageSet?.truncated == true)
    }

    @Test("A page that fails temporarily is retried alone, without other pages")
    func retries() throws {
        let busy = RunFailure(.transient, "the origin answered 503", retryAfter: .seconds(20))
        let loading = try Loading([
            "/1": [.page(items: "[1]", count: 1, links: ["/2"])],
            "/2": [.fails(busy), .fails(RunFailure(.connection, "reset")), .page(items: "[2]", count: 1)],
        ])
        #expect(loading.result == nil)
        try loading.advance(19)
        #expect(loading.origin.asked == ["/1", "/2"])
        try loading.advance(1)
        #expect(loading.origin.asked == ["/1", "/2", "/2"])
        try loading.advance(2)
        #expect(loading.text == "[1,2]\n")
        #expect(loading.origin.asked == ["/1", "/2", "/2", "/2"])
        #expect(loading.asked == 4)
    }

    @Test("A page that keeps failing fails the whole set, and the failure names the page")
    func givenUp() throws {
        let loading = try Loading([
            "/1": [.page(items: "[1]", count: 1, links: ["/2"])],
            "/2": [.fails(RunFailure(.transient, "the origin answered 503", status: 503))],
        ])
        try loading.advance(20)
        #expect(loading.failure == RunFailure(.transient, "page 2: the origin answered 503", status: 503))
        #expect(loading.origin.asked == ["/1"] + Array(repeating: "/2", count: 1 + PageMachine.retryLimit))
    }

    @Test("The first page's failure is that of the source, and is not retried here")
    func firstFails() throws {
        let failure = RunFailure(.transient, "the origin answered 503")
        let loading = try Loading(["/1": [.fails(failure)]])
        #expect(loading.failure == failure)
        #expect(loading.asked == 1)
    }

    @Test("If a page is gone, the set begins again, once")
    func gone() throws {
        let gone = RunFailure(.refused, "the origin answered 410 Gone", status: 410)
        let once = try Loading([
            "/1": [.page(items: "[1]", count: 1, links: ["/2"]), .page(items: "[3]", count: 1, links: ["/4"])],
            "/2": [.fails(gone)], "/4": [.page(items: "[4]", count: 1)],
        ])
        #expect(once.text == "[3,4]\n")
        #expect(once.loaded.pages == 2)
        let twice = try Loading(["/1": [.page(items: "[1]", count: 1, links: ["/2"])], "/2": [.fails(gone)]])
        #expect(twice.failure?.message == "page 2: the origin answered 410 Gone")
        #expect(twice.origin.asked == ["/1", "/2", "/1", "/2"])
    }

    @Test("A set that leads back to itself is a failure")
    func loop() throws {
        let loading = try Loading([
            "/1": [.page(items: "[1]", count: 1, links: ["/2"])], "/2": [.page(items: "[2]", count: 1, links: ["/1"])],
        ])
        #expect(loading.failure?.message.hasPrefix("page 2 leads back to page 1 by its link") == true)
        #expect(loading.asked == 2)
    }

    @Test("The status of a page after the last one ends a counted set")
    func pastEnd() throws {
        let loading = try Loading(
            [
                "/1?p=1": [.page(items: "[1]", count: 1)],
                "/1?p=2": [.fails(RunFailure(.refused, "the origin answered 400", status: 400))],
            ], PagesDefinition(next: .page(parameter: "p", first: 1, PageSize(1, pastEnd: 400))))
        #expect(loading.text == "[1]\n")
        #expect(loading.pageSet?.pages == 1)
    }

    @Test("All items together may have the size of one answer, and no more")
    func size() throws {
        // "[10,20]" and a newline are eight bytes.
        let answers: [String: [ScriptedPages.Answer]] = [
            "/1": [.page(items: "[10]", count: 1, links: ["/2"])], "/2": [.page(items: "[20]", count: 1)],
        ]
        #expect(try Loading(answers, check: CheckRules(maxBytes: 8)).text == "[10,20]\n")
        let failure = try Loading(answers, check: CheckRules(maxBytes: 7)).failure
        #expect(failure?.message == "the items of 2 pages have more bytes than check.max-bytes allows (7)")
    }

    @Test("Each page must have an accepted media type")
    func type() throws {
        let loading = try Loading(
            [
                "/1": [.page(items: "[1]", count: 1, links: ["/2"], type: "application/json")],
                "/2": [.page(items: "[2]", count: 1, type: "text/html")],
            ], check: CheckRules(types: ["application/json"]))
        #expect(loading.failure?.message.hasPrefix("page 2: rejected by check.type: the answer is text/html") == true)
    }

    @Test("A cancelled load ends with its request, or its wait")
    func cancelled() throws {
        let hanging = try Loading(["/1": [.page(items: "[1]", count: 1, links: ["/2"])], "/2": [.hangs]])
        #expect(hanging.origin.open == 1)
        try hanging.cancel()
        #expect(hanging.origin.open == 0)
        #expect(hanging.result == .failure(.cancelled))
        let waiting = try Loading([
            "/1": [.page(items: "[1]", count: 1, links: ["/2"])],
            "/2": [.fails(RunFailure(.transient, "503", retryAfter: .seconds(30)))],
        ])
        try waiting.cancel()
        #expect(waiting.result == .failure(.cancelled))
        #expect(waiting.clock.manual.sleeperCount == 0)
    }

    @Test("Thousands of pages become one set")
    func many() throws {
        var answers: [String: [ScriptedPages.Answer]] = [:]
        for page in 1...3000 { answers["/\(page)"] = [.page(items: "[\(page)]", count: 1, links: ["/\(page + 1)"])] }
        let loading = try Loading(answers, PagesDefinition(next: .link, max: 3000))
        #expect(loading.text == "[" + (1...3000).map(String.init).joined(separator: ",") + "]\n")
        #expect(loading.pageSet?.truncated == true)
    }
}
