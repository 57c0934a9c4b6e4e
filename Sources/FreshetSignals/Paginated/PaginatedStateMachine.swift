/// Decides which page is loaded when.
struct PaginatedStateMachine<Cursor: Hashable> {
    /// The next step of the sequence.
    enum Action {
        /// Load this page, by its cursor unless it is the first page.
        case load(Cursor?, page: Int, attempt: Int)
        /// Wait for an output of the signal; this many pages were delivered.
        case sleep(pages: Int)
        /// Wait for an output of the signal, then retry the page.
        case sleepAfterFailure
        /// Fail with the error of the last attempt.
        case failAsLoad
        /// Fail with this error.
        case fail(RepeatedCursorError)
        /// End; this many pages were delivered.
        case end(pages: Int)
    }

    private let initially: Int
    private let hasSignal: Bool
    private var memory = SeenCursors<Cursor>()
    /// The number of delivered pages.
    private var pages = 0
    /// The cursor of the next page.
    private var cursor: Cursor?
    /// How often the load of the next page was tried.
    private var attempts = 0

    /// - Parameters:
    ///   - initially: How many pages are loaded at the start; a negative number counts as zero.
    ///   - hasSignal: Whether an output can request further pages.
    init(initially: Int, hasSignal: Bool) {
        self.initially = initially
        self.hasSignal = hasSignal
    }

    /// The sequence begins.
    mutating func start() -> Action {
        proceed()
    }

    /// The page was loaded, and the consumer has taken it.
    mutating func delivered(next: Cursor?) -> Action {
        pages += 1
        attempts = 0
        guard let next else { return .end(pages: pages) }
        guard memory.insert(next) else { return .fail(RepeatedCursorError(cursor: "\(next)", page: pages)) }
        cursor = next
        return proceed()
    }

    /// The page could not be loaded.
    mutating func failed() -> Action {
        // Without the first page there is nothing to deliver, and without a signal there is no retry.
        pages == 0 || !hasSignal ? .failAsLoad : .sleepAfterFailure
    }

    /// The signal delivered an output while the sequence waited for it.
    mutating func output() -> Action {
        load()
    }

    /// The signal ended.
    mutating func signalEnded() -> Action {
        attempts > 0 ? .failAsLoad : .end(pages: pages)
    }

    private mutating func proceed() -> Action {
        if pages < initially { return load() }
        return hasSignal ? .sleep(pages: pages) : .end(pages: pages)
    }

    private mutating func load() -> Action {
        attempts += 1
        return .load(cursor, page: pages + 1, attempt: attempts)
    }
}

extension PaginatedStateMachine: Sendable where Cursor: Sendable {}
