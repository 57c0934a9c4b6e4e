/// Keeps the sessions from what logind says, and decides when somebody has arrived.
///
/// | logind | then |
/// | --- | --- |
/// | can be heard | sessions are listed and each is asked for; when all have answered, they are compared with those known before |
/// | could be heard from the start | what is found first is how it is, and no news |
/// | could not at first | what is found later is news: without logind there was no session |
/// | is lost | what is known stays, to be compared with what is found when it is back |
///
/// A listing that was overtaken by the loss of logind is void: answers carry the number of theirs.
struct SessionMachine: Sendable {
    /// The most sessions that are asked for at a time; the rest wait.
    static let maximumQuestions = 64

    /// What is to be done, in this order.
    struct Outcome: Hashable, Sendable {
        /// Fire, with these details.
        var arrivals: [String] = []
        /// List the sessions.
        var lists = false
        /// Ask for the properties of these.
        var asks: [String] = []
    }

    /// Whether logind can be heard, and who it is.
    enum Logind: Hashable, Sendable {
        case pending
        case heard(sender: String)
        case missing(reason: String)
    }

    let scope: SessionScope
    private(set) var fact: SessionFact
    /// The number of the present listing.
    private(set) var listing: UInt64 = 0
    /// What logind told that fired nothing: a lock, a switch away, an end, a session that does not count. Its answers to
    /// a listing are not news, and do not count.
    private(set) var minor: UInt64 = 0

    private var logind: Logind
    /// What firings are measured by; nil: nothing is known yet.
    private var known: SessionSnapshot?
    /// What logind has said.
    private var heard = SessionSnapshot()
    /// Sessions that do not count.
    private var others: Set<String> = []
    /// Sessions that were asked for.
    private var open: Set<String> = []
    /// Sessions that are to be asked for, in order; those that are in ``isWaiting`` no more are left out.
    private var waiting: [String] = []
    private var isWaiting: Set<String> = []
    private var stage = Stage.settled

    private enum Stage: Hashable {
        /// The list has not come.
        case listing
        /// It has, and sessions on it have not answered.
        case asking
        /// Each change counts at once.
        case settled
    }

    init(_ scope: SessionScope, _ logind: Logind = .pending) {
        self.scope = scope
        self.logind = .pending
        fact = SessionFact()
        _ = logindBecame(logind)
    }

    /// logind can be heard, or not, or it is another one.
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
        case .heard:
            fact.logind = .pending
            stage = .listing
            heard = SessionSnapshot()
            others = []
            return Outcome(lists: true)
        }
        return Outcome()
    }

    /// The sessions that there are; nil: it was not to be had, for this reason.
    mutating func listed(_ rows: [LogindMessage.Row]?, reason: String = "", listing number: UInt64) -> Outcome {
        guard number == listing, stage == .listing else { return Outcome() }
        guard let rows else {
            stage = .settled
            fact.logind = .unavailable(reason: reason)
            known = known ?? SessionSnapshot()
            return Outcome()
        }
        fact.logind = .available
        stage = .asking
        for row in rows where counts(row.userID) { request(row.path) }
        return advance()
    }

    private func counts(_ user: UInt32) -> Bool { scope == .local || scope == .user(user) }

    /// A session's properties; nil: it is gone.
    mutating func answered(_ path: String, _ properties: LogindMessage.Properties?, listing number: UInt64) -> Outcome {
        guard number == listing, open.remove(path) != nil else { return Outcome() }
        let isNews = stage == .settled
        take(path, properties)
        return isNews ? counted(advance()) : advance()
    }

    private mutating func take(_ path: String, _ properties: LogindMessage.Properties?) {
        guard let properties, properties.counts(in: scope) else {
            heard.sessions[path] = nil
            if properties != nil { others.insert(path) }
            return
        }
        others.remove(path)
        heard.sessions[path] = properties.session
    }

    /// There is a new session.
    mutating func added(_ path: String) -> Outcome {
        guard case .heard = logind, fact.logind == .available || stage == .listing else { return Outcome() }
        request(path)
        return advance()
    }

    /// A session is gone.
    mutating func removed(_ path: String) -> Outcome {
        open.remove(path)
        isWaiting.remove(path)
        others.remove(path)
        heard.sessions[path] = nil
        return counted(advance())
    }

    /// A session's properties have changed.
    mutating func changed(_ path: String, _ change: LogindMessage.Change) -> Outcome {
        // Its answer comes after this, and has it all.
        guard !open.contains(path) else { return Outcome() }
        if change.isVague { return added(path) }
        guard change.isActive != nil || change.isLocked != nil, !others.contains(path) else {
            return counted(Outcome())
        }
        guard var session = heard.sessions[path] else { return stage == .settled ? added(path) : Outcome() }
        session.isActive = change.isActive ?? session.isActive
        session.isLocked = change.isLocked ?? session.isLocked
        heard.sessions[path] = session
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

    /// Asks for what waits, and compares when there is something to compare.
    private mutating func advance() -> Outcome {
        var outcome = Outcome()
        var next = 0
        while next < waiting.count, open.count < Self.maximumQuestions {
            let path = waiting[next]
            next += 1
            guard isWaiting.remove(path) != nil else { continue }
            open.insert(path)
            outcome.asks.append(path)
        }
        waiting.removeFirst(next)
        if stage == .asking, open.isEmpty { stage = .settled }
        guard stage == .settled, fact.logind == .available else { return outcome }
        if let known { outcome.arrivals = SessionChange(from: known, to: heard).arrivals }
        known = heard
        fact = SessionFact(heard, logind: .available)
        return outcome
    }
}
