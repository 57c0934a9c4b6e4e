internal import FreshetSignals

/// The permits of one run from the ``RequestLimiter``: each of its requests holds a permit while it is in progress.
///
/// *A waiting request never holds a permit.* Before a request of the run waits, the run releases the permit that none
/// of its requests uses, and it keeps no permit while a request waits. So each holder of a permit makes progress and
/// ends by itself, and no two runs wait for each other.
///
/// When a request has succeeded, and no other request of the run is in progress or waits, the run keeps the permit
/// while it processes the answer: other runs must not load more than can be processed. The next request of the run
/// releases the permit and waits like every other request; so a run with many requests has no advantage.
final class RunPermits: Sendable {
    private struct Permit {
        var ticket: RequestLimiter.Ticket
        var origin: HTTPOrigin?
        /// Whether no request has used the permit yet.
        var isUnused: Bool
    }

    private struct State {
        /// The permit that no request uses; nil while a request is in progress or waits.
        var kept: Permit?
        /// The waiting requests, in the order in which they began to wait.
        var waiting: [RequestLimiter.Ticket] = []
        var inProgress = 0
        /// The number of pauses in progress, in which the run keeps no permit.
        var pauses = 0
        /// Paths for which the file system does not answer.
        var files: [String] = []
        /// The descriptions of the waits for memory, by their numbers.
        var memoryWaits: [UInt64: String] = [:]
        var lastWait: UInt64 = 0
        var isClosed = false
        var isStalled = false

        mutating func takeKept() -> Permit? {
            defer { kept = nil }
            return kept
        }

        /// Updates whether the run is stalled; returns whether that changed.
        mutating func recordStall() -> Bool {
            let before = isStalled
            isStalled = (!waiting.isEmpty || !memoryWaits.isEmpty) && inProgress == 0
            return isStalled != before
        }
    }

    private let requestLimiter: RequestLimiter
    /// The pipeline of the run.
    let pipeline: UInt64
    private let state: Lock<State>
    private let stalls: @Sendable (Bool) -> Void

    /// - Parameters:
    ///   - pipeline: the pipeline of the run; requests of different pipelines are granted alternately.
    ///   - ticket: the permit with which the run begins; nil: it begins without one.
    ///   - origin: the origin of that permit.
    ///   - - stalls: called with true when all requests of the run wait for permits or memory, and with false when that
    ///     ends. From
    ///     any thread, in order; it must not block or call this object.
    init(
        _ requestLimiter: RequestLimiter, for pipeline: UInt64, beginningWith ticket: RequestLimiter.Ticket? = nil,
        at origin: HTTPOrigin? = nil, stalls: @escaping @Sendable (Bool) -> Void = { _ in }
    ) {
        self.requestLimiter = requestLimiter
        self.pipeline = pipeline
        self.stalls = stalls
        state = Lock(State(kept: ticket.map { Permit(ticket: $0, origin: origin, isUnused: true) }))
    }

    /// Makes a request when it gets a permit.
    ///
    /// - Parameter origin: the origin of the request; nil: the request is not over HTTP.
    /// - Throws: ``FetchError/cancelled`` if the task is cancelled while it waits; the request's errors.
    func pass<Result: Sendable>(
        at origin: HTTPOrigin?, _ request: () async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        let permit = try await take(at: origin)
        do throws(FetchError) {
            let result = try await request()
            giveBack(permit, mayKeep: true)
            return result
        } catch {
            // There is no answer to process, and the next request may come much later.
            giveBack(permit, mayKeep: false)
            throw error
        }
    }

    /// Runs a pause, in which the run keeps no permit.
    func pause(_ body: () async -> Void) async {
        beginPause()
        await body()
        state.withLock { $0.pauses -= 1 }
    }

    /// Runs work in which the run keeps no permit.
    func pausing<Result>(
        _ work: () async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        beginPause()
        defer { state.withLock { $0.pauses -= 1 } }
        return try await work()
    }

    private func beginPause() {
        let idle = state.withLock { state in
            state.pauses += 1
            return state.takeKept()
        }
        if let idle { requestLimiter.release(idle.ticket) }
    }

    /// The run has ended and keeps no permit.
    func close() {
        let idle = state.withLock { state in
            state.isClosed = true
            return state.takeKept()
        }
        if let idle { requestLimiter.release(idle.ticket) }
    }

    /// The queue in which the run waits, if the run is stalled.
    var queue: RequestLimiter.Queue? {
        state.withLock { $0.isStalled ? $0.waiting.first : nil }.flatMap(requestLimiter.queue)
    }

    /// The path for which the file system does not answer; nil: none.
    var hungFile: String? { state.withLock { $0.files.first } }

    /// Records that a read of a file hangs, or that it has ended. While a read hangs, the run keeps no permit.
    func recordFileWait(_ path: String, isWaiting: Bool) {
        let idle = state.withLock { state -> Permit? in
            if isWaiting {
                state.files.append(path)
                state.pauses += 1
                return state.takeKept()
            }
            guard let index = state.files.firstIndex(of: path) else { return nil }
            state.files.remove(at: index)
            state.pauses -= 1
            return nil
        }
        if let idle { requestLimiter.release(idle.ticket) }
    }

    /// The number of a new wait for memory; it grows.
    func nextWait() -> UInt64 {
        state.withLock { state in
            state.lastWait += 1
            return state.lastWait
        }
    }

    /// Records that a part of the run waits for memory; meanwhile the run keeps no permit. Nil: the wait has ended.
    func recordMemoryWait(_ number: UInt64, _ detail: String?) {
        let idle = state.withLock { state in
            state.memoryWaits[number] = detail
            if state.recordStall() { stalls(state.isStalled) }
            return detail == nil ? nil : state.takeKept()
        }
        if let idle { requestLimiter.release(idle.ticket) }
    }

    /// The memory that the run waits for, if the run is stalled.
    var memoryWait: String? {
        state.withLock { $0.isStalled ? $0.memoryWaits.min { $0.key < $1.key }?.value : nil }
    }

    private func take(at origin: HTTPOrigin?) async throws(FetchError) -> Permit {
        let (own, idle) = state.withLock { state -> (Permit?, Permit?) in
            guard let kept = state.takeKept() else { return (nil, nil) }
            guard kept.isUnused, kept.origin == origin else { return (nil, kept) }
            begin(&state)
            return (kept, nil)
        }
        if let own { return own }
        if let idle { requestLimiter.release(idle.ticket) }
        let isGranted = OneTimeEvent()
        switch requestLimiter.request(for: pipeline, at: origin, { isGranted.happen() }) {
        case .granted(let ticket):
            // Another request of the run may have kept a permit meanwhile.
            let idle = state.withLock { state in
                begin(&state)
                return state.takeKept()
            }
            if let idle { requestLimiter.release(idle.ticket) }
            return Permit(ticket: ticket, origin: origin, isUnused: false)
        case .queued(let ticket):
            try await wait(for: ticket, isGranted)
            return Permit(ticket: ticket, origin: origin, isUnused: false)
        }
    }

    private func wait(for ticket: RequestLimiter.Ticket, _ isGranted: OneTimeEvent) async throws(FetchError) {
        // The same; from now on no request keeps a permit.
        let idle = state.withLock { state in
            state.waiting.append(ticket)
            if state.recordStall() { stalls(true) }
            return state.takeKept()
        }
        if let idle { requestLimiter.release(idle.ticket) }
        let isCancelled = await !isGranted.wait()
        state.withLock { state in
            state.waiting.removeAll { $0 == ticket }
            if !isCancelled { state.inProgress += 1 }
            if state.recordStall() { stalls(state.isStalled) }
        }
        guard isCancelled else { return }
        // Withdraws the request, or releases the permit that came at the same moment.
        requestLimiter.release(ticket)
        throw .cancelled
    }

    private func begin(_ state: inout State) {
        state.inProgress += 1
        if state.recordStall() { stalls(false) }
    }

    private func giveBack(_ permit: Permit, mayKeep: Bool) {
        let isKept = state.withLock { state in
            state.inProgress -= 1
            if state.recordStall() { stalls(true) }
            guard mayKeep, state.inProgress == 0, state.waiting.isEmpty, state.memoryWaits.isEmpty, state.pauses == 0,
                !state.isClosed
            else {
                return false
            }
            state.kept = Permit(ticket: permit.ticket, origin: permit.origin, isUnused: false)
            return true
        }
        if !isKept { requestLimiter.release(permit.ticket) }
    }
}

/// A fetcher that waits for a permit of the run before each request.
struct LimitedFetcher: Fetching {
    let fetcher: any Fetching
    let permits: RunPermits

    func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        switch request.source {
        case .http, .command:
            try await permits.pass(at: request.source.origin) { () throws(FetchError) in
                try await fetcher.fetch(request)
            }
        // A read of a file needs no permit.
        case .file, .copy, .joined: try await fetcher.fetch(tracked(request))
        }
    }

    private func tracked(_ request: FetchRequest) -> FetchRequest {
        var request = request
        request.pipeline = permits.pipeline
        request.waitsForFile = { [permits] path, isWaiting in permits.recordFileWait(path, isWaiting: isWaiting) }
        return request
    }

    func resolve(_ reference: String, against base: String) -> WebAddress? {
        fetcher.resolve(reference, against: base)
    }
}
