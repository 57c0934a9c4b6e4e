/// What ends the replies to a request.
enum RequestKind: Sendable {
    /// The first reply.
    case single
    /// The limit of time begins again with each reply.
    case several(NATSReplyLimits, isLast: @Sendable (NATSMessage) -> Bool)
    /// The server's PONG: everything that was sent before has been processed.
    case flush
}

/// The replies to a request, or why it failed.
typealias RequestOutcome = Result<[NATSMessage], NATSError>

/// The requests that wait for replies, up to a limit. A pure struct: time is a parameter.
///
/// `Waiter` resumes the caller of a request.
struct RequestTable<Waiter> {
    typealias Instant = ContinuousClock.Instant

    private struct Pending {
        var kind: RequestKind
        var subject: String
        var timeout: Duration
        var deadline: Instant
        var waiter: Waiter
        /// The place in the order of the requests.
        var place: UInt64
        var replies: [NATSMessage] = []
        var bytes = 0
    }

    /// The most requests.
    let limit: Int
    private var pending: [UInt64: Pending] = [:]
    /// When the first request expires.
    private(set) var deadline: Instant?
    private var lastPlace: UInt64 = 0
    /// Why no request can get a reply on this connection; nil: nothing prevents it.
    var refusal: NATSError?

    init(limit: Int) { self.limit = limit }

    var isFull: Bool { pending.count >= limit }
    var count: Int { pending.count }

    /// A new token, which is part of the subject for replies. It is random: who sees the token of one request must not
    /// know that of the next, or could answer it.
    func makeToken() -> UInt64 {
        var token: UInt64
        repeat { token = .random(in: .min ... .max) } while pending[token] != nil
        return token
    }

    /// Adds a request.
    ///
    /// - Parameter subject: the subject of the request, to find it in the server's errors; empty: none.
    mutating func add(
        _ token: UInt64, _ kind: RequestKind, subject: String, timeout: Duration, at now: Instant, _ waiter: Waiter
    ) {
        let until = now + timeout
        lastPlace += 1
        pending[token] = Pending(
            kind: kind, subject: subject, timeout: timeout, deadline: until, waiter: waiter, place: lastPlace)
        deadline = min(deadline ?? until, until)
    }

    /// The caller's function that says whether a reply is the last one; nil: it is not to be asked.
    func function(for message: NATSMessage, _ token: UInt64) -> (@Sendable (NATSMessage) -> Bool)? {
        guard !message.isNoResponders, !message.isEndOfBatch, case .several(_, let isLast)? = pending[token]?.kind
        else {
            return nil
        }
        return isLast
    }

    /// Whether a reply that cannot be used is left out.
    func skipsUnusable(_ token: UInt64) -> Bool {
        guard case .several(let limits, _)? = pending[token]?.kind else { return false }
        return limits.skipsUnusable
    }

    /// A reply arrived. Returns the waiter and its outcome if that ends the request; a reply without a request is
    /// ignored, since the request may have ended before.
    ///
    /// - Parameter isLast: what ``function(for:_:)`` returned.
    mutating func received(
        _ message: NATSMessage, for token: UInt64, isLast: Bool = false, at now: Instant
    ) -> (Waiter, RequestOutcome)? {
        guard let index = pending.index(forKey: token) else { return nil }
        let limits: NATSReplyLimits
        switch pending.values[index].kind {
        case .flush: return nil
        case .single:
            return end(token, message.isNoResponders ? .failure(.noResponders) : .success([message]))
        case .several(let several, _): limits = several
        }
        // Outside of the switch, which keeps a copy of the request: with it, each reply would copy all replies before it.
        let replies = pending.values[index].replies.count
        if message.isNoResponders, replies == 0 { return end(token, .failure(.noResponders)) }
        if message.isEndOfBatch { return end(token, .success(pending.values[index].replies)) }
        guard replies < limits.replies, message.weight <= limits.bytes - pending.values[index].bytes else {
            return end(token, .failure(.repliesTooLarge))
        }
        pending.values[index].replies.append(message)
        guard !isLast else { return end(token, .success(pending.values[index].replies)) }
        pending.values[index].bytes += message.weight
        let earlier = pending.values[index].deadline
        pending.values[index].deadline = now + pending.values[index].timeout
        if earlier == deadline { findDeadline() }
        return nil
    }

    /// Ends a request. Returns nil if it has ended before.
    mutating func end(_ token: UInt64, _ outcome: RequestOutcome) -> (Waiter, RequestOutcome)? {
        guard let request = pending.removeValue(forKey: token) else { return nil }
        if request.deadline == deadline { findDeadline() }
        return (request.waiter, outcome)
    }

    /// Ends the requests whose time is over.
    mutating func expire(at now: Instant) -> [Waiter] {
        guard let deadline, deadline <= now else { return [] }
        return remove { $0.deadline <= now }
    }

    /// Ends the requests to a subject to which the server does not permit to publish.
    mutating func remove(to subject: String) -> [Waiter] { remove { $0.subject == subject } }

    /// No request gets a reply on this connection: ends all that wait for one.
    mutating func refuse(_ error: NATSError) -> [Waiter] {
        refusal = error
        return remove { if case .flush = $0.kind { false } else { true } }
    }

    /// Ends all requests.
    mutating func removeAll() -> [Waiter] { remove { _ in true } }

    private mutating func remove(_ isEnded: (Pending) -> Bool) -> [Waiter] {
        let ended = pending.filter { isEnded($0.value) }
        for token in ended.keys { pending[token] = nil }
        findDeadline()
        return ended.values.sorted { $0.place < $1.place }.map(\.waiter)
    }

    private mutating func findDeadline() { deadline = pending.values.lazy.map(\.deadline).min() }
}
