/// Which page is loaded when.
struct PaginatedStateMachine<Cursor: Hashable> {
    /// What comes next.
    enum Action {
        /// Load this page, by its cursor unless it is the first.
        case load(Cursor?, page: Int, attempt: Int)
        /// Wait for an output of the signal, with this many pages delivered.
        case sleep(pages: Int)
        /// Wait for an output of the signal, which tries again.
        case sleepAfterFailure
        /// Fail with the error of the last attempt.
        case failAsLoad
        /// Fail with this error.
        case fail(RepeatedCursorError)
        /// End, with this many pages delivered.
        case end(pages: Int)
    }

    private let initially: Int
    private let hasSignal: Bool
    private var memory = SeenCursors<Cursor>()
    /// How many pages were delivered.
    private var pages = 0
    /// Of the next page.
    private var cursor: Cursor?
    /// How often the next page was tried.
    private var attempts = 0

    /// - Parameters:
    ///   - initially: How many pages are loaded without being asked for; less than zero is zero.
    ///   - hasSignal: More can be asked for.
    init(initially: Int, hasSignal: Bool) {
        self.initially = initially
        self.hasSignal = hasSignal
    }

    /// It begins.
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
        // Without the first page there is nothing to show, and without a signal nobody to ask again.
        pages == 0 || !hasSignal ? .failAsLoad : .sleepAfterFailure
    }

    /// The signal delivered while this waited for it.
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
