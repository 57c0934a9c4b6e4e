/// Tracks the sessions from logind's messages, and decides when a user has arrived.
///
/// | logind | action |
/// | --- | --- |
/// | becomes available | the sessions are listed and their properties read; then all are compared with those before |
/// | is available from the start | the first result is the initial state and does not fire |
/// | is not available at first | a later result fires: without logind there was no session |
/// | is lost | the known sessions stay, to be compared with the sessions after its return |
///
/// A listing that the loss of logind has interrupted is void: replies carry the number of their listing.
struct SessionMachine: Sendable {
    /// The maximum number of sessions whose properties are requested at the same time; the rest wait.
    static let maximumRequests = 64

    /// The actions to perform, in this order.
    struct Outcome: Hashable, Sendable {
        /// Fire, with these details.
        var arrivals: [String] = []
        /// List the sessions.
        var lists = false
        /// Request the properties of these sessions.
        var requests: [String] = []
    }

    /// Whether logind is available, and its unique bus name.
    enum Logind: Hashable, Sendable {
        case pending
        case received(sender: String)
        case missing(reason: String)
    }

    let scope: SessionScope
    private(set) var fact: SessionFact
    /// The number of the current listing.
    private(set) var listing: UInt64 = 0
    /// The number of logind's messages that fired nothing: a lock, a switch away, an end, a session that does not
    /// count. Replies to a listing do not count.
    private(set) var minor: UInt64 = 0

    private var logind: Logind
    /// The state that changes are compared with; nil: it is unknown.
    private var known: SessionSnapshot?
    /// The state according to logind.
    private var received = SessionSnapshot()
    /// Sessions that do not count.
    private var others: Set<String> = []
    /// Sessions whose properties were requested.
    private var open: Set<String> = []
    /// Sessions whose properties are to be requested, in order; the ones that are no longer in ``isWaiting`` are
    /// skipped.
    private var waiting: [String] = []
    private var isWaiting: Set<String> = []
    private var stage = Stage.settled

    private enum Stage: Hashable {
        /// The list has not arrived.
        case listing
        /// The list has arrived, and some of its sessions' properties have not.
        case reading
        /// Each change counts immediately.
        case settled
    }

    init(_ scope: SessionScope, _ logind: Logind = .pending) {
        self.scope = scope
        self.logind = .pending
        fact = SessionFact()
        _ = logindBecame(logind)
    }

    /// logind became available or unavailable, or is another process.
    mutating func logindBecame(_ new: Logind) -> Outcome {
        guard new != logind else { return Outcome() }
        logind = new
        listing += 1
        open = []
        waiting = []
        isWaiting = []
        stage = .settled
        switch new {
        case .pending: fact.logind = .pending
        case .missing(let reason):
            fact.logind = .unavailable(reason: reason)
            known = known ?? SessionSnapshot()
        case .received:
            fact.logind = .pending
            stage = .listing
            received = SessionSnapshot()
            others = []
            return Outcome(lists: true)
        }
        return Outcome()
    }

    /// The current sessions; nil: they could not be read, for this reason.
    mutating func listed(_ rows: [LogindMessage.Row]?, reason: String = "", listing number: UInt64) -> Outcome {
        guard number == listing, stage == .listing else { return Outcome() }
        guard let rows else {
            stage = .settled
            fact.logind = .unavailable(reason: reason)
            known = known ?? SessionSnapshot()
            return Outcome()
        }
        fact.logind = .available
        stage = .reading
        for row in rows where counts(row.userID) { request(row.path) }
        return advance()
    }

    private func counts(_ user: UInt32) -> Bool { scope == .local || scope == .user(user) }

    /// A session's properties; nil: the session is gone.
    mutating func answered(_ path: String, _ properties: LogindMessage.Properties?, listing number: UInt64) -> Outcome {
        guard number == listing, open.remove(path) != nil else { return Outcome() }
        let isNew = stage == .settled
        take(path, properties)
        return isNew ? counted(advance()) : advance()
    }

    private mutating func take(_ path: String, _ properties: LogindMessage.Properties?) {
        guard let properties, properties.counts(in: scope) else {
            received.sessions[path] = nil
            if properties != nil { others.insert(path) }
            return
        }
        others.remove(path)
        received.sessions[path] = properties.session
    }

    /// A session was added.
    mutating func added(_ path: String) -> Outcome {
        guard case .received = logind, fact.logind == .available || stage == .listing else { return Outcome() }
        request(path)
        return advance()
    }

    /// A session was removed.
    mutating func removed(_ path: String) -> Outcome {
        open.remove(path)
        isWaiting.remove(path)
        others.remove(path)
        received.sessions[path] = nil
        return counted(advance())
    }

    /// A session's properties have changed.
    mutating func changed(_ path: String, _ change: LogindMessage.Change) -> Outcome {
        // The reply arrives after this and is complete.
        guard !open.contains(path) else { return Outcome() }
        if change.isVague { return added(path) }
        guard change.isActive != nil || change.isLocked != nil, !others.contains(path) else {
            return counted(Outcome())
        }
        guard var session = received.sessions[path] else { return stage == .settled ? added(path) : Outcome() }
        session.isActive = change.isActive ?? session.isActive
        session.isLocked = change.isLocked ?? session.isLocked
        received.sessions[path] = session
        return counted(advance())
    }

    private mutating func counted(_ outcome: Outcome) -> Outcome {
        if outcome.arrivals.isEmpty { minor += 1 }
        return outcome
    }

    private mutating func request(_ path: String) {
        guard !open.contains(path), isWaiting.insert(path).inserted else { return }
        waiting.append(path)
    }

    /// Requests the properties of waiting sessions, and compares states when all have arrived.
    private mutating func advance() -> Outcome {
        var outcome = Outcome()
        var next = 0
        while next < waiting.count, open.count < Self.maximumRequests {
            let path = waiting[next]
            next += 1
            guard isWaiting.remove(path) != nil else { continue }
            open.insert(path)
            outcome.requests.append(path)
        }
        waiting.removeFirst(next)
        if stage == .reading, open.isEmpty { stage = .settled }
        guard stage == .settled, fact.logind == .available else { return outcome }
        if let known { outcome.arrivals = SessionChange(from: known, to: received).arrivals }
        known = received
        fact = SessionFact(received, logind: .available)
        return outcome
    }
}
