internal import FreshetSignals

/// The pages of a set, as one.
struct PageSet: Hashable, Sendable {
    /// The items of all pages: one JSON array, and a newline.
    var items: [UInt8]
    var pages: Int
    /// There are more pages than were asked for, because of the limit on them.
    var truncated: Bool
    /// Where it goes on; nil: it does not, or was to have no end.
    var next: PageBookmark?
    /// What asks for the changes since; nil: nothing does.
    var token: String?
}

/// Loads the pages of a source one after the other: asks, has its program say what a page holds, goes on.
struct PageLoader: Sendable {
    let pages: PagesDefinition
    let source: HTTPSource
    /// What the programs find beside a page.
    var variables: [JQVariable] = []
    let world: EngineDependencies
    /// Nil: pages are in memory.
    var reader: ContentReader?
    /// What each answer, and all items together, must satisfy.
    let check: CheckRules
    /// The waits of a page that fails.
    let retry: RetryPolicy
    let jitter: Jitter
    let epoch: UInt64
    /// Told how far it has come.
    let progress: RunProgress
    /// Goes on with these: by one page if there is a next one, by what has changed if there is a token. Nil: begins with
    /// nothing.
    var earlier: StoredPages?

    /// Where a set is, shared by the loads of its pages, of which there is one at a time.
    private final class Course: Sendable {
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
        /// Of the last page; nil if that is not the last of the set.
        var token: String? { state.withLock { $0.truncated ? nil : $0.token } }

        func found(_ token: String?) { state.withLock { $0.token = token } }

        func restart() {
            state.withLock { state in
                state.machine.restart()
                state.earlier = nil
                state.truncated = false
            }
        }

        /// The request for the page after this one; nil: it is the last.
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

    /// What stands behind the items.
    private static let end = Array("]\n".utf8)

    /// The set has to be begun anew.
    private struct Restart: Error {}

    /// All pages that are wanted; or a failure, and nothing.
    func load() async throws(FetchError) -> PageSet {
        let fetcher = world.fetcher
        let machine = PageMachine(
            pages, of: source, from: earlier?.next, token: earlier?.token, retry: retry, jitter: jitter
        ) {
            fetcher.resolve($0, against: $1)
        }
        let course = Course(machine, after: earlier)
        let loaded = progress.trackPages()
        while true {
            do {
                return try await merged(try await pass(course, loaded))
            } catch is Restart {
                // Once: the machine says so no second time.
                course.restart()
            } catch let error as FetchError {
                throw error
            } catch {
                throw .failed(RunFailure(.local, "the pages could not be loaded: \(error)"))
            }
        }
    }

    /// Once from the first page to the last.
    private func pass(_ course: Course, _ loaded: @Sendable (Int) -> Void) async throws -> PageSet {
        let first = course.first
        let earlier = course.earlier
        var items = earlier.map { $0.items.dropLast(Self.end.count) } ?? Array("[".utf8)[...]
        var count = 0
        // The machine ends the sequence where it was asked to, and sees a page that leads back sooner than `paginated`.
        let sequence = paginated(by: nil, initially: .max) {
            try await page(first, course)
        } next: {
            try await page($0, course)
        }
        for try await page in sequence {
            // A page after the last one is none.
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
            truncated: course.isTruncated, next: course.bookmark, token: usable(course.token))
    }

    /// A token that makes too long a URL is none: all is asked for each time.
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

    /// A page, asked for until it is there or is given up.
    private func page(
        _ request: PageMachine.Request, _ course: Course
    ) async throws -> Page<[UInt8], PageMachine.Request> {
        while true {
            do throws(FetchError) {
                return try await read(request, course)
            } catch {
                guard case .failed(let failure) = error else { throw error }
                switch course.failed(failure) {
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
        _ request: PageMachine.Request, _ course: Course
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
            let reading = try program.reading(outputs, page: request.page)
            let facts = PageMachine.Facts(
                items: reading.count, links: content.links, location: content.location, next: reading.next,
                more: reading.more, total: reading.total)
            let next = try course.loaded(facts)
            course.found(reading.token)
            return Page([reading.items], next: next)
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
                    keeper: reader?.keeper))
        } catch {
            // The first page's failure is that of the source.
            throw request.page > 1 ? error.naming(page: request.page) : error
        }
        guard case .content(let content) = result else {
            throw .failed(.unaskedNotModified)
        }
        if let refusal = check.refusal(ofType: content.mediaType) {
            await content.body.discard()
            throw FetchError.failed(refusal).naming(page: request.page)
        }
        return content
    }
}

extension FetchError {
    /// The failure, with the page in front of it.
    fileprivate func naming(page: Int) -> FetchError {
        guard case .failed(var failure) = self else { return self }
        failure.message = "page \(page): \(failure.message)"
        return .failed(failure)
    }
}

extension EngineClock {
    /// Returns when so much time has passed, or when the task is cancelled.
    func pause(for duration: Duration) async {
        let isOver = CurrentValue(false)
        let timer = makeTimer { isOver.value = true }
        timer.arm(at: now + duration)
        for await over in isOver where over { break }
        timer.disarm()
    }
}
