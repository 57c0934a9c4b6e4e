internal import FreshetModel
internal import FreshetSignals

/// The permit of a pipeline's next run: requested, or granted and not used yet. The run begins with it.
///
/// It is a value under the lock of the runner, so that an idle pipeline has no object for it. The limiter is asked
/// without that lock, except for the description of a queue.
struct NextPermit {
    struct Permit: Sendable {
        /// The machine's number of the request.
        var number: UInt64
        var ticket: RequestLimiter.Ticket
        var origin: HTTPOrigin?
        /// The description of the queue, which two events about one wait share.
        var description: String?
    }

    @Boxed private var permit: Permit?

    /// A permit was requested.
    ///
    /// - Parameters:
    ///   - number: the machine's number of the request.
    ///   - origin: the origin of the first request; nil: it has none.
    mutating func requested(_ number: UInt64, _ ticket: RequestLimiter.Ticket, at origin: HTTPOrigin?) {
        permit = Permit(number: number, ticket: ticket, origin: origin)
    }

    /// Takes the ticket of a request, which its caller releases; nil: the run has taken the permit.
    mutating func release(_ number: UInt64) -> RequestLimiter.Ticket? {
        guard let released = permit, released.number == number else { return nil }
        permit = nil
        return released.ticket
    }

    /// The run begins with the permit, and owns it from now on.
    mutating func take() -> Permit? {
        defer { permit = nil }
        return permit
    }

    /// The description of the queue for the event that a wait begins, and for the change of the state that follows it.
    ///
    /// - Parameter begins: whether it is the first of the two.
    mutating func detailed(_ wait: Wait, begins: Bool, by limiter: RequestLimiter) -> Wait {
        guard begins || permit?.description == nil else {
            var wait = wait
            if wait.reason == .permit { wait.detail = permit?.description }
            permit?.description = nil
            return wait
        }
        let detailed = detailed(wait, by: limiter)
        if begins, wait.reason == .permit { permit?.description = detailed.detail }
        return detailed
    }

    /// The wait with the limiter's description of the queue, if it is a wait for this permit.
    func detailed(_ wait: Wait, by limiter: RequestLimiter) -> Wait {
        guard wait.reason == .permit, let ticket = permit?.ticket, let queue = limiter.queue(of: ticket) else {
            return wait
        }
        var wait = wait
        wait.detail = queue.description
        return wait
    }
}

extension PipelineRunner {
    /// Requests a permit for the run's first request; the other requests have their own permits.
    ///
    /// - Parameter number: the machine's number of the request.
    /// - Returns: whether it was granted immediately; otherwise an event follows when it is granted.
    func requestPermit(_ number: UInt64) -> Bool {
        let origin = definition.source.firstOrigin
        let reply = world.requestLimiter.request(for: mailbox.key, at: origin) { [mailbox] in
            mailbox.post(.permitGranted(number))
        }
        let (ticket, isGranted) =
            switch reply {
            case .granted(let ticket): (ticket, true)
            case .queued(let ticket): (ticket, false)
            }
        state.withLock { $0.permit.requested(number, ticket, at: origin) }
        return isGranted
    }

    /// Releases the permit, or withdraws the request, unless the run has taken the permit.
    func releasePermit(_ number: UInt64) {
        if let ticket = state.withLock({ $0.permit.release(number) }) { world.requestLimiter.release(ticket) }
    }

    /// The event with a description of the queue for permits, if it is about a wait for a permit.
    func detailed(_ event: EngineEvent) -> EngineEvent {
        func detailed(_ wait: Wait, begins: Bool) -> Wait {
            state.withLock { [limiter = world.requestLimiter] state in
                state.permit.detailed(wait, begins: begins, by: limiter)
            }
        }
        return switch event {
        case .waitingBegan(let wait): .waitingBegan(detailed(wait, begins: true))
        case .stateChanged(.waiting(let wait)): .stateChanged(.waiting(detailed(wait, begins: false)))
        default: event
        }
    }
}
