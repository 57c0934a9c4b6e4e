internal import FreshetSignals

/// The places for requests that go on at once: so many of all pipelines together, and so many at one origin. A command
/// and a file have no origin, and the first limit alone.
///
/// Who has waited longest is served first, but for those whose origin is full: they hold up nobody behind them. A
/// pipeline with several wishes at an origin is served one, and is then behind all who wait at that moment; so none gets
/// more than its turn, however often it asks.
package final class RequestLimiter: Sendable {
    /// How many requests may go on at once.
    package struct Limits: Hashable, Sendable {
        /// Of all pipelines; at least 1.
        package var total: Int
        /// At one origin; at least 1.
        package var perOrigin: Int

        package init(total: Int, perOrigin: Int) {
            self.total = total
            self.perOrigin = perOrigin
        }
    }

    /// A place for one request, or the wish for one.
    package struct Ticket: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// What a wish for a place came to.
    package enum Reply: Hashable, Sendable {
        case granted(Ticket)
        /// The handler will be called.
        case queued(Ticket)
    }

    /// What stands between a wish and its place.
    package struct Queue: Hashable, Sendable, CustomStringConvertible {
        /// The origin whose limit it is; nil: that of all requests.
        package var origin: HTTPOrigin?
        /// How many places there are.
        package var limit: Int
        /// How many pipelines have waited longer: at the origin, or for any place at all.
        package var ahead: Int

        /// A sentence without its end, such as `6 requests are under way at https://example.com, 2 others wait longer`.
        package var description: String {
            var text = limit == 1 ? "1 request is under way" : "\(limit) requests are under way"
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

    /// Asks for a place for one request.
    ///
    /// - Parameters:
    ///   - pipeline: who asks; wishes of one pipeline take turns with those of others.
    ///   - origin: whom the request goes to; nil: it is no request over HTTP.
    ///   - granted: called once when the place is there, from the thread that gave it back, unless there is one now or
    ///     the ticket is given back before. It must not block.
    package func request(
        for pipeline: UInt64, at origin: HTTPOrigin?, _ granted: @escaping @Sendable () -> Void
    ) -> Reply {
        let (ticket, isGranted) = state.withLock { $0.request(for: pipeline, at: origin, granted) }
        return isGranted ? .granted(Ticket(number: ticket)) : .queued(Ticket(number: ticket))
    }

    /// Gives a place back, or the wish for one. A second time has no effect.
    package func release(_ ticket: Ticket) {
        state.withLock { $0.release(ticket.number) }?()
    }

    /// Other limits from now on. With lower ones, places that are taken beyond them are not given out again.
    package func change(_ limits: Limits) {
        for grant in state.withLock({ $0.change(limits) }) { grant() }
    }

    /// What a wish waits for; nil: nothing, or not any more.
    package func queue(of ticket: Ticket) -> Queue? {
        state.withLock { $0.queue(of: ticket.number) }
    }

    /// How many places are taken, and how many wishes wait for one.
    package var counts: (taken: Int, waiting: Int) {
        state.withLock { ($0.takenCount, $0.waitingCount) }
    }
}
