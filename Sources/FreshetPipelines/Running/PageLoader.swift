import FreshetModel
internal import FreshetSignals

/// The merged pages of a set.
struct PageSet: Hashable, Sendable {
    /// The items of all pages: one JSON array, then a newline.
    var items: [UInt8]
    var pages: Int
    /// Whether the limit on pages ended the set although there are more.
    var truncated: Bool
    /// Where the set continues; nil: it is complete, or all pages were requested.
    var next: PageBookmark?
    /// The token that requests later changes; nil: there is none.
    var token: String?
}

/// Loads the pages of a source one after the other: fetches a page, extracts its items with the program, continues.
struct PageLoader: Sendable {
    let pages: PagesDefinition
    let source: HTTPSource
    /// The variables of the programs.
    var variables: [JQVariable] = []
    let world: EngineDependencies
    /// Nil: pages are kept in memory.
    var reader: ContentReader?
    /// The checks of each answer and of all items together.
    let check: CheckRules
    /// The backoff of a page that fails.
    let retry: RetryPolicy
    let jitter: Jitter
    let epoch: UInt64
    /// Gets the progress.
    let progress: RunProgress
    /// The pages to continue: by one page if there is a next one, with the changes if there is a token. Nil: begins
    /// with an empty set.
    var earlier: StoredPages?

    /// The state of a set, shared by the loads of its pages, which run one at a time.
    private final class LoadState: Sendable {
        private struct State {
            var machine: PageMachine
            var earlier: StoredPages?
            var truncated = false
            var bookmark: PageBookmark?
            var token: String?
        }
        private let state: Lock<State>

        init(_ machine: PageMachine, after earlier: StoredPages?) {
            state = Lock(State(machine: machine, earlier: earlier))
        }

        var first: PageMachine.Request { state.withLock { $0.machine.first } }
        var earlier: StoredPages? { state.withLock { $0.earlier } }
        var isTruncated: Bool { state.withLock { $0.truncated } }
        var bookmark: PageBookmark? { state.withLock { $0.bookmark } }
        /// The token of the last page; nil if the set was truncated.
        var token: String? { state.withLock { $0.truncated ? nil : $0.token } }

        func found(_ token: String?) { state.withLock { $0.token = token } }

        func restart() {
            state.withLock { state in
                state.machine.restart()
                state.earlier = nil
                state.truncated = false
            }
        }

        /// The request for the page after this one; nil: this page is the last.
        func loaded(_ facts: PageMachine.Facts) throws(RunFailure) -> PageMachine.Request? {
            try state.withLock { state throws(RunFailure) in
                switch try state.machine.loaded(facts) {
                case .load(let next): return next
                case .rest(let bookmark):
                    state.bookmark = bookmark
                    return nil
                case .end(let truncated):
                    state.truncated = truncated
                    return nil
                }
            }
        }

        func failed(_ failure: RunFailure) -> PageMachine.AfterFailure {
            state.withLock { $0.machine.failed(failure) }
        }
    }

    /// The text after the items.
    private static let end = Array("]\n".utf8)

    /// The set has to be loaded again from the first page.
    private struct Restart: Error {}

    /// Loads all requested pages, or throws a failure without any.
    func load() async throws(FetchError) -> PageSet {
        let fetcher = world.fetcher
        let machine = PageMachine(
            pages, of: source, from: earlier?.next, token: earlier?.token, retry: retry, jitter: jitter
        ) {
            fetcher.resolve($0, against: $1)
        }
        let loadState = LoadState(machine, after: earlier)
        let loaded = progress.trackPages()
        while true {
            do {
                return try await merged(try await pass(loadState, loaded))
            } catch is Restart {
                // This happens once: the machine does not request a second restart.
                loadState.restart()
            } catch let error as FetchError {
                throw error
            } catch {
                throw .failed(RunFailure(.local, "the pages could not be loaded: \(error)"))
            }
        }
    }

    /// Loads the pages once, from the first to the last.
    private func pass(_ loadState: LoadState, _ loaded: @Sendable (Int) -> Void) async throws -> PageSet {
        let first = loadState.first
        let earlier = loadState.earlier
        var items = earlier.map { $0.items.dropLast(Self.end.count) } ?? Array("[".utf8)[...]
        var count = 0
        // The machine ends the sequence at the requested page, and detects a loop sooner than `paginated`.
        let sequence = paginated(by: nil, initially: .max) {
            try await page(first, loadState)
        } next: {
            try await page($0, loadState)
        }
        for try await page in sequence {
            // A page without values is after the last one.
            guard let array = page.first else { break }
            count += 1
            loaded(count)
            let inner = array.dropFirst().dropLast()
            if items.count > 1, !inner.isEmpty { items.append(UInt8(ascii: ",")) }
            items += inner
            guard UInt64(items.count + Self.end.count) <= check.maxBytes else {
                throw FetchError.failed(
                    RunFailure(
                        .content,
                        "the items of \((earlier?.count ?? 0) + count) pages have more bytes than check.max-bytes allows (\(check.maxBytes))"
                    ))
            }
        }
        if Task.isCancelled { throw FetchError.cancelled }
        items += Self.end
        return PageSet(
            items: Array(items), pages: (earlier?.next == nil ? 0 : earlier?.count ?? 0) + count,
            truncated: loadState.isTruncated, next: loadState.bookmark, token: usable(loadState.token))
    }

    /// Returns the token unless its URL would be too long; then each check requests everything.
    private func usable(_ token: String?) -> String? {
        guard let token, let sync = pages.sync else { return nil }
        let url = QueryParameter.setting(sync.parameter, to: token, in: source.url)
        return url.utf8.count <= URLTemplate.maximumLength ? token : nil
    }

    private func merged(_ set: PageSet) async throws(FetchError) -> PageSet {
        guard let key = pages.key else { return set }
        var merged = set
        merged.items = try await world.transformer.transform(
            set.items, by: PageProgram.merging(by: key, without: pages.sync?.deleted), variables: variables)
        return merged
    }

    // MARK: One page

    /// Loads a page, with retries.
    private func page(
        _ request: PageMachine.Request, _ loadState: LoadState
    ) async throws -> Page<[UInt8], PageMachine.Request> {
        while true {
            do throws(FetchError) {
                return try await read(request, loadState)
            } catch {
                guard case .failed(let failure) = error else { throw error }
                switch loadState.failed(failure) {
                case .again(let wait):
                    await world.pause(for: wait)
                    if Task.isCancelled { throw FetchError.cancelled }
                case .restart: throw Restart()
                case .end: return Page([], next: nil)
                case .fail: throw error
                }
            }
        }
    }

    private func read(
        _ request: PageMachine.Request, _ loadState: LoadState
    ) async throws(FetchError) -> Page<[UInt8], PageMachine.Request> {
        let content = try await fetch(request)
        let program = PageProgram(pages)
        let outputs: [[UInt8]]
        do throws(FetchError) {
            outputs = try await (reader ?? ContentReader(world: world)).read(content.body) {
                (bytes, world) throws(FetchError) in
                try await world.transformer.values(of: bytes, by: program.text, variables: variables)
            }
        } catch {
            throw error.naming(page: request.page)
        }
        do throws(RunFailure) {
            let parsed = try program.parsed(outputs, page: request.page)
            let facts = PageMachine.Facts(
                items: parsed.count, links: content.links, location: content.location, next: parsed.next,
                more: parsed.more, total: parsed.total)
            let next = try loadState.loaded(facts)
            loadState.found(parsed.token)
            return Page([parsed.items], next: next)
        } catch {
            throw .failed(error)
        }
    }

    private func fetch(_ request: PageMachine.Request) async throws(FetchError)
        -> FetchedContent
    {
        if Task.isCancelled { throw .cancelled }
        try progress.allowRequest()
        let result: FetchResult
        do throws(FetchError) {
            result = try await world.fetcher.fetch(
                FetchRequest(
                    source: .http(request.source), maxBytes: check.maxBytes, epoch: epoch,
                    progress: progress.track(), asked: { [progress] in progress.countRequest() },
                    bodyStore: reader?.bodyStore))
        } catch {
            // A failure of the first page is a failure of the source, and does not name the page.
            throw request.page > 1 ? error.naming(page: request.page) : error
        }
        guard case .content(let content) = result else {
            throw .failed(.unexpectedNotModified)
        }
        if let rejection = check.rejection(ofType: content.mediaType) {
            await content.body.discard()
            throw FetchError.failed(rejection).naming(page: request.page)
        }
        return content
    }
}

extension FetchError {
    /// The failure with the page's number before its message.
    fileprivate func naming(page: Int) -> FetchError {
        guard case .failed(var failure) = self else { return self }
        failure.message = "page \(page): \(failure.message)"
        return .failed(failure)
    }
}

extension EngineClock {
    /// Returns when this time has passed, or when the task is cancelled.
    func pause(for duration: Duration) async {
        let isOver = CurrentValue(false)
        let timer = makeTimer { isOver.value = true }
        timer.arm(at: now + duration)
        for await over in isOver where over { break }
        timer.disarm()
    }
}
