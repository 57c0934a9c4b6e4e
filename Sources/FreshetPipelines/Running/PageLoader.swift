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
    /// The pages of loads that were interrupted; nil: the set begins with its first page in any case.
    var interrupted: InterruptedSets?
    /// The key of this set in `interrupted`.
    var key = ""

    /// The state of a set, shared by the loads of its pages, which run one at a time.
    private final class LoadState: Sendable {
        private struct State {
            var machine: PageMachine
            var earlier: StoredPages?
            var truncated = false
            var bookmark: PageBookmark?
            var token: String?
            /// The items so far, as a JSON array without its end.
            var items: [UInt8] = []
            /// The number of pages that this load has, with those of the interrupted one.
            var count = 0
            var first: InterruptedSets.FirstPage?
            /// When the load of the first page began, in this run or in an earlier one.
            var begun: BootInstant
            /// Whether all requested pages are loaded.
            var isComplete = false
            /// The pages of an interrupted load, until the first page has shown whether they are used.
            var interrupted: InterruptedSets.InterruptedSet?
        }
        private let state: Lock<State>

        init(
            _ machine: PageMachine, after earlier: StoredPages?, _ interrupted: InterruptedSets.InterruptedSet?,
            at now: BootInstant
        ) {
            state = Lock(State(machine: machine, earlier: earlier, begun: now, interrupted: interrupted))
        }

        /// Begins with the first page, and with the earlier items.
        func begin(at now: BootInstant) {
            state.withLock { state in
                state.begun = now
                state.items = state.earlier.map { $0.items.dropLast(PageLoader.end.count) } ?? Array("[".utf8)
                state.count = 0
                (state.first, state.isComplete) = (nil, false)
            }
        }

        var items: [UInt8] { state.withLock { $0.items } }
        var count: Int { state.withLock { $0.count } }

        /// The validators of the first page of the interrupted load; nil: there is none.
        var firstValidators: Validators? {
            state.withLock { $0.interrupted.map(\.first.validators) }.flatMap { $0.isEmpty ? nil : $0 }
        }

        /// Goes on with the interrupted load, if its first page is still the same.
        ///
        /// - Parameter first: the first page; nil: its origin says that it is the same.
        /// - Returns: the request for the page that had failed; nil: there is no such load, or the first page is another
        ///   one.
        func goOn(after first: InterruptedSets.FirstPage?) -> PageMachine.Request? {
            state.withLock { state in
                guard let before = state.interrupted else { return nil }
                state.interrupted = nil
                if let first, (first.items, first.facts) != (before.first.items, before.first.facts) { return nil }
                state.items = before.items
                state.count = before.count
                state.begun = before.begun
                state.first = first ?? before.first
                return state.machine.goOn(at: before.position)
            }
        }

        /// The pages to keep after the load has failed; nil: none.
        func interruptedSet(at now: BootInstant) -> InterruptedSets.InterruptedSet? {
            state.withLock { state in
                if let unused = state.interrupted { return unused }
                guard let first = state.first, !state.isComplete, state.earlier == nil, state.machine.position.page > 1
                else { return nil }
                return InterruptedSets.InterruptedSet(
                    first: first, position: state.machine.position, items: state.items, count: state.count,
                    begun: state.begun, confirmed: now)
            }
        }

        func complete() { state.withLock { $0.isComplete = true } }

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
                state.interrupted = nil
                state.truncated = false
            }
        }

        /// The request for the page after this one; nil: this page is the last.
        ///
        /// - Parameter items: the page's items as the inner part of a JSON array.
        func loaded(
            _ facts: PageMachine.Facts, _ items: ArraySlice<UInt8>, _ validators: Validators
        ) throws(RunFailure) -> PageMachine.Request? {
            try state.withLock { state throws(RunFailure) in
                let isFirst = state.machine.position.page == 1
                let step = try state.machine.loaded(facts)
                if isFirst {
                    state.first = InterruptedSets.FirstPage(items: Array(items), facts: facts, validators: validators)
                }
                if state.items.count > 1, !items.isEmpty { state.items.append(UInt8(ascii: ",")) }
                state.items += items
                state.count += 1
                switch step {
                case .load(let next): return next
                case .rest(let bookmark):
                    state.bookmark = bookmark
                case .end(let truncated):
                    state.truncated = truncated
                }
                state.isComplete = true
                return nil
            }
        }

        func failed(_ failure: RunFailure) -> PageMachine.AfterFailure {
            state.withLock { $0.machine.failed(failure) }
        }
    }

    /// The text after the items.
    fileprivate static let end = Array("]\n".utf8)

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
        let isWhole = earlier == nil
        let loadState = LoadState(
            machine, after: earlier, isWhole ? interrupted?.take(key, at: world.clock.now) : nil, at: world.clock.now)
        let loaded = progress.trackPages()
        while true {
            do {
                return try await merged(try await pass(loadState, loaded))
            } catch is Restart {
                // This happens once: the machine does not request a second restart.
                loadState.restart()
            } catch let error as FetchError {
                if isWhole, error.leavesPages, let set = loadState.interruptedSet(at: world.clock.now) {
                    interrupted?.keep(set, as: key, at: world.clock.now)
                }
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
        loadState.begin(at: world.clock.now)
        // The machine ends the sequence at the requested page, and detects a loop sooner than `paginated`.
        let sequence = paginated(by: nil, initially: .max) {
            try await page(first, loadState)
        } next: {
            try await page($0, loadState)
        }
        for try await page in sequence {
            // A page without values is after the last one.
            guard let (count, size) = page.first else { break }
            loaded(count)
            guard UInt64(size + Self.end.count) <= check.maxBytes else {
                throw FetchError.failed(
                    RunFailure(
                        .content,
                        "the items of \((earlier?.count ?? 0) + count) pages have more bytes than check.max-bytes allows (\(check.maxBytes))"
                    ))
            }
        }
        if Task.isCancelled { throw FetchError.cancelled }
        return PageSet(
            items: loadState.items + Self.end,
            pages: (earlier?.next == nil ? 0 : earlier?.count ?? 0) + loadState.count,
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

    /// The number of pages so far, and the size of their items.
    private typealias Loaded = Page<(count: Int, size: Int), PageMachine.Request>

    /// Loads a page, with retries.
    private func page(_ request: PageMachine.Request, _ loadState: LoadState) async throws -> Loaded {
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
                case .end:
                    loadState.complete()
                    return Page([], next: nil)
                case .fail: throw error
                }
            }
        }
    }

    private func read(
        _ request: PageMachine.Request, _ loadState: LoadState
    ) async throws(FetchError) -> Loaded {
        let isFirst = request.page == 1
        guard let content = try await fetch(request, isFirst ? loadState.firstValidators : nil) else {
            return try page(after: loadState.goOn(after: nil), loadState)
        }
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
            let items = parsed.items.dropFirst().dropLast()
            if isFirst {
                let first = InterruptedSets.FirstPage(
                    items: Array(items), facts: facts, validators: content.validators)
                if let next = loadState.goOn(after: first) { return loaded(loadState, next) }
            }
            let next = try loadState.loaded(facts, items, content.validators)
            loadState.found(parsed.token)
            return loaded(loadState, next)
        } catch {
            throw .failed(error)
        }
    }

    private func loaded(_ loadState: LoadState, _ next: PageMachine.Request?) -> Loaded {
        Page([(loadState.count, loadState.items.count)], next: next)
    }

    private func page(after next: PageMachine.Request?, _ loadState: LoadState) throws(FetchError) -> Loaded {
        guard let next else { throw .failed(.unexpectedNotModified) }
        return loaded(loadState, next)
    }

    /// - Parameter validators: those of the first page of an interrupted load.
    /// - Returns: nil if the page has not changed.
    private func fetch(
        _ request: PageMachine.Request, _ validators: Validators?
    ) async throws(FetchError) -> FetchedContent? {
        if Task.isCancelled { throw .cancelled }
        try progress.allowRequest()
        let result: FetchResult
        do throws(FetchError) {
            result = try await world.fetcher.fetch(
                FetchRequest(
                    source: .http(request.source), validators: validators, maxBytes: check.maxBytes, epoch: epoch,
                    progress: progress.track(), asked: { [progress] in progress.countRequest() },
                    bodyStore: reader?.bodyStore))
        } catch {
            // A failure of the first page is a failure of the source, and does not name the page.
            throw request.page > 1 ? error.naming(page: request.page) : error
        }
        guard case .content(let content) = result else {
            guard validators != nil else { throw .failed(.unexpectedNotModified) }
            return nil
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
    package func pause(for duration: Duration) async {
        let isOver = OneTimeEvent()
        let timer = makeTimer { isOver.happen() }
        timer.arm(at: now + duration)
        _ = await isOver.wait()
        timer.disarm()
    }
}
