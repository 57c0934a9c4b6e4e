internal import FreshetSignals

/// Limits the number of concurrent requests, in total and per origin. A command and a file have no origin, so only the
/// total limit applies to them.
///
/// The longest waiting request gets the next permit. Requests for an origin at its limit are passed by, so that they do
/// not block others. If a pipeline has several waiting requests for an origin, one is granted, and the others go behind
/// all requests that wait at that moment; so a pipeline with many requests has no advantage.
package final class RequestLimiter: Sendable {
    /// The most concurrent requests.
    package struct Limits: Hashable, Sendable {
        /// In total, over all pipelines; at least 1.
        package var total: Int
        /// Per origin; at least 1.
        package var perOrigin: Int

        package init(total: Int, perOrigin: Int) {
            self.total = total
            self.perOrigin = perOrigin
        }
    }

    /// A permit for one request, or the request for a permit.
    package struct Ticket: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// The reply to a request for a permit.
    package enum Reply: Hashable, Sendable {
        case granted(Ticket)
        /// The handler will be called.
        case queued(Ticket)
    }

    /// Why a request waits for its permit.
    package struct Queue: Hashable, Sendable, CustomStringConvertible {
        /// The origin whose limit applies; nil: the total limit.
        package var origin: HTTPOrigin?
        /// The limit.
        package var limit: Int
        /// The number of queues that have waited longer: at the origin, or in total.
        package var ahead: Int

        /// Text such as `6 requests are in progress at https://example.com, 2 others wait longer`.
        package var description: String {
            var text = limit == 1 ? "1 request is in progress" : "\(limit) requests are in progress"
            if let origin { text += " at \(origin)" }
            switch ahead {
            case 0: return text
            case 1: return text + ", 1 other waits longer"
            default: return text + ", \(ahead) others wait longer"
            }
        }
    }

    private let state: Lock<RequestLimiterMachine<@Sendable () -> Void>>

    package init(_ limits: Limits) {
        state = Lock(RequestLimiterMachine(limits))
    }

    /// Requests a permit for one request.
    ///
    /// - Parameters:
    ///   - pipeline: the pipeline of the request; requests of different pipelines are granted alternately.
    ///   - origin: the origin of the request; nil: the request is not over HTTP.
    ///   - granted: called once when the permit is granted, from the thread that released it, unless the permit is
    ///     granted immediately or the ticket is released before. It must not block.
    package func request(
        for pipeline: UInt64, at origin: HTTPOrigin?, _ granted: @escaping @Sendable () -> Void
    ) -> Reply {
        let (ticket, isGranted) = state.withLock { $0.request(for: pipeline, at: origin, granted) }
        return isGranted ? .granted(Ticket(number: ticket)) : .queued(Ticket(number: ticket))
    }

    /// Releases a permit, or withdraws the request for one. A second call has no effect.
    package func release(_ ticket: Ticket) {
        state.withLock { $0.release(ticket.number) }?()
    }

    /// Sets other limits. Permits above a lower limit are not granted again when they are released.
    package func change(_ limits: Limits) {
        for grant in state.withLock({ $0.change(limits) }) { grant() }
    }

    /// Why a request waits; nil: it does not wait.
    package func queue(of ticket: Ticket) -> Queue? {
        state.withLock { $0.queue(of: ticket.number) }
    }

    /// The number of permits in use, and the number of waiting requests.
    package var counts: (taken: Int, waiting: Int) {
        state.withLock { ($0.takenCount, $0.waitingCount) }
    }
}
