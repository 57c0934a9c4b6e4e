internal import FreshetSignals

/// The permit of a pipeline's next run: requested, or granted and not used yet. The run begins with it.
final class NextPermit: Sendable {
    struct Permit: Sendable {
        /// The machine's number of the request.
        var number: UInt64
        var ticket: RequestLimiter.Ticket
        var origin: HTTPOrigin?
    }

    private let permit = Lock<Permit?>(nil)
    private let limiter: RequestLimiter

    init(_ limiter: RequestLimiter) { self.limiter = limiter }

    /// Requests a permit for the run's first request; the other requests have their own permits.
    ///
    /// - Parameters:
    ///   - number: the machine's number of the request.
    ///   - origin: the origin of the first request; nil: it has none.
    ///   - granted: called when the permit is granted later.
    /// - Returns: whether it was granted immediately.
    func request(
        _ number: UInt64, for pipeline: CauseInbox.Key, at origin: HTTPOrigin?, granted: @escaping @Sendable () -> Void
    ) -> Bool {
        let reply = limiter.request(for: pipeline, at: origin, granted)
        let (ticket, isGranted) =
            switch reply {
            case .granted(let ticket): (ticket, true)
            case .queued(let ticket): (ticket, false)
            }
        permit.withLock { $0 = Permit(number: number, ticket: ticket, origin: origin) }
        return isGranted
    }

    /// Releases the permit, or withdraws the request, unless the run has taken the permit.
    func release(_ number: UInt64) {
        let ticket = permit.withLock { permit -> RequestLimiter.Ticket? in
            guard let released = permit, released.number == number else { return nil }
            permit = nil
            return released.ticket
        }
        if let ticket { limiter.release(ticket) }
    }

    /// The run begins with the permit, and owns it from now on.
    func take() -> Permit? {
        permit.withLock { permit in
            defer { permit = nil }
            return permit
        }
    }

    /// The wait with the limiter's description of the queue, if it is a wait for this permit.
    func detailed(_ wait: Wait) -> Wait {
        guard wait.reason == .permit, let ticket = permit.withLock({ $0?.ticket }),
            let queue = limiter.queue(of: ticket)
        else { return wait }
        var wait = wait
        wait.detail = queue.description
        return wait
    }
}
