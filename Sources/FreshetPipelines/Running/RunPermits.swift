internal import FreshetSignals

/// The places of one run among the ``RequestLimiter``: each of its requests has one while it goes on.
///
/// *Nobody who waits for a place holds one.* Before a request of the run waits, what the run holds and no request of it
/// uses is given back, and nothing is kept as long as one waits. So whoever has a place is at work with it and comes to an
/// end by itself, and no two runs wait for each other.
///
/// When a request has succeeded, and no other one of the run is under way or waits, its place is kept while the run works
/// on what it loaded: others are not to load more than can be dealt with. The next request of the run gives it back and
/// waits for its turn as everybody does; so a run of many requests is ahead of nobody.
final class RunPermits: Sendable {
    private struct Place {
        var ticket: RequestLimiter.Ticket
        var origin: HTTPOrigin?
        /// It has been waited for, and nothing asked with it yet.
        var isUnused: Bool
    }

    private struct State {
        /// No request of the run uses it; nil while one is under way or waits.
        var kept: Place?
        /// In the order in which they began to wait.
        var waiting: [RequestLimiter.Ticket] = []
        var underWay = 0
        /// So many of the run let time go by.
        var resting = 0
        /// Paths for which the file system does not answer.
        var files: [String] = []
        /// What those wait for that wait for memory, by their numbers.
        var memoryWaits: [UInt64: String] = [:]
        var lastWait: UInt64 = 0
        var isClosed = false
        var isStalled = false

        mutating func takeKept() -> Place? {
            defer { kept = nil }
            return kept
        }

        /// Whether that is news.
        mutating func noteStall() -> Bool {
            let before = isStalled
            isStalled = (!waiting.isEmpty || !memoryWaits.isEmpty) && underWay == 0
            return isStalled != before
        }
    }

    private let slots: RequestLimiter
    /// Who asks.
    let pipeline: UInt64
    private let state: Lock<State>
    private let stalls: @Sendable (Bool) -> Void

    /// - Parameters:
    ///   - pipeline: who asks: wishes of one pipeline take turns with those of others.
    ///   - ticket: the place with which the run begins; nil: it begins without one.
    ///   - origin: whom that is for.
    ///   - stalls: is told when all that the run asks for waits for places, and when that is over. From any thread, in
    ///     order; it must not block, nor call this.
    init(
        _ slots: RequestLimiter, for pipeline: UInt64, beginningWith ticket: RequestLimiter.Ticket? = nil,
        at origin: HTTPOrigin? = nil, stalls: @escaping @Sendable (Bool) -> Void = { _ in }
    ) {
        self.slots = slots
        self.pipeline = pipeline
        self.stalls = stalls
        state = Lock(State(kept: ticket.map { Place(ticket: $0, origin: origin, isUnused: true) }))
    }

    /// Makes a request when there is a place for it.
    ///
    /// - Parameter origin: whom it goes to; nil: it is none over HTTP.
    /// - Throws: ``FetchError/cancelled`` if the task is cancelled while it waits; the request's errors.
    func pass<Result: Sendable>(
        at origin: HTTPOrigin?, _ request: () async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        let place = try await take(at: origin)
        do throws(FetchError) {
            let result = try await request()
            giveBack(place, mayKeep: true)
            return result
        } catch {
            // There is nothing to work on, and it may be long until the next one.
            giveBack(place, mayKeep: false)
            throw error
        }
    }

    /// Lets time go by, for which nothing is kept.
    func rest(_ body: () async -> Void) async {
        let idle = state.withLock { state in
            state.resting += 1
            return state.takeKept()
        }
        if let idle { slots.release(idle.ticket) }
        await body()
        state.withLock { $0.resting -= 1 }
    }

    /// The run is over, and keeps nothing.
    func close() {
        let idle = state.withLock { state in
            state.isClosed = true
            return state.takeKept()
        }
        if let idle { slots.release(idle.ticket) }
    }

    /// What the run waits for, if there is nothing else that it could go on with.
    var queue: RequestLimiter.Queue? {
        state.withLock { $0.isStalled ? $0.waiting.first : nil }.flatMap(slots.queue)
    }

    /// The path for which the run waits, since the file system does not answer; nil: none.
    var hungFile: String? { state.withLock { $0.files.first } }

    /// Notes that a read of a file hangs, or that it has ended. As long as one hangs the run keeps no place.
    func note(_ path: String, isWaiting: Bool) {
        let idle = state.withLock { state -> Place? in
            if isWaiting {
                state.files.append(path)
                state.resting += 1
                return state.takeKept()
            }
            guard let index = state.files.firstIndex(of: path) else { return nil }
            state.files.remove(at: index)
            state.resting -= 1
            return nil
        }
        if let idle { slots.release(idle.ticket) }
    }

    /// A number for a wait for memory, higher than those before.
    func nextWait() -> UInt64 {
        state.withLock { state in
            state.lastWait += 1
            return state.lastWait
        }
    }

    /// Notes that something of the run waits for memory, for which no place is kept; or, with nil, that it does no more.
    func noteMemoryWait(_ number: UInt64, _ detail: String?) {
        let idle = state.withLock { state in
            state.memoryWaits[number] = detail
            if state.noteStall() { stalls(state.isStalled) }
            return detail == nil ? nil : state.takeKept()
        }
        if let idle { slots.release(idle.ticket) }
    }

    /// The memory that the run waits for, if there is nothing else that it could go on with.
    var memoryWait: String? {
        state.withLock { $0.isStalled ? $0.memoryWaits.min { $0.key < $1.key }?.value : nil }
    }

    private func take(at origin: HTTPOrigin?) async throws(FetchError) -> Place {
        let (own, idle) = state.withLock { state -> (Place?, Place?) in
            guard let kept = state.takeKept() else { return (nil, nil) }
            guard kept.isUnused, kept.origin == origin else { return (nil, kept) }
            begin(&state)
            return (kept, nil)
        }
        if let own { return own }
        if let idle { slots.release(idle.ticket) }
        let isThere = CurrentValue(false)
        switch slots.request(for: pipeline, at: origin, { isThere.value = true }) {
        case .granted(let ticket):
            // What another request of the run kept since this one looked.
            let idle = state.withLock { state in
                begin(&state)
                return state.takeKept()
            }
            if let idle { slots.release(idle.ticket) }
            return Place(ticket: ticket, origin: origin, isUnused: false)
        case .queued(let ticket):
            try await wait(for: ticket, isThere)
            return Place(ticket: ticket, origin: origin, isUnused: false)
        }
    }

    private func wait(for ticket: RequestLimiter.Ticket, _ isThere: CurrentValue<Bool>) async throws(FetchError) {
        // The same; and from now on none keeps anything.
        let idle = state.withLock { state in
            state.waiting.append(ticket)
            if state.noteStall() { stalls(true) }
            return state.takeKept()
        }
        if let idle { slots.release(idle.ticket) }
        for await isThere in isThere where isThere { break }
        let isCancelled = Task.isCancelled
        state.withLock { state in
            state.waiting.removeAll { $0 == ticket }
            if !isCancelled { state.underWay += 1 }
            if state.noteStall() { stalls(state.isStalled) }
        }
        guard isCancelled else { return }
        // The wish, or the place that came at the same moment.
        slots.release(ticket)
        throw .cancelled
    }

    private func begin(_ state: inout State) {
        state.underWay += 1
        if state.noteStall() { stalls(false) }
    }

    private func giveBack(_ place: Place, mayKeep: Bool) {
        let isKept = state.withLock { state in
            state.underWay -= 1
            if state.noteStall() { stalls(true) }
            guard mayKeep, state.underWay == 0, state.waiting.isEmpty, state.memoryWaits.isEmpty, state.resting == 0,
                !state.isClosed
            else {
                return false
            }
            state.kept = Place(ticket: place.ticket, origin: place.origin, isUnused: false)
            return true
        }
        if !isKept { slots.release(place.ticket) }
    }
}

/// Asks when there is a place for it among those of a run.
struct LimitedFetcher: Fetching {
    let fetcher: any Fetching
    let places: RunPermits

    func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        switch request.source {
        case .http, .command:
            try await places.pass(at: request.source.origin) { () throws(FetchError) in
                try await fetcher.fetch(request)
            }
        // A read of a file needs no place.
        case .file, .copy, .joined: try await fetcher.fetch(tracked(request))
        }
    }

    private func tracked(_ request: FetchRequest) -> FetchRequest {
        var request = request
        request.pipeline = places.pipeline
        request.waitsForFile = { [places] path, isWaiting in places.note(path, isWaiting: isWaiting) }
        return request
    }

    func resolve(_ reference: String, against base: String) -> WebAddress? {
        fetcher.resolve(reference, against: base)
    }
}
