/// A session of a user at this machine, according to logind (org.freedesktop.login1(5)).
public struct LoginSession: Hashable, Sendable, CustomStringConvertible {
    /// logind's identifier, such as `3` or `c1`.
    public var id: String
    public var userID: UInt32
    public var userName: String
    /// Whether it is the foreground session of its seat.
    public var isActive: Bool
    /// Whether its screen is locked, according to its desktop (`LockedHint`).
    public var isLocked: Bool

    public init(id: String, userID: UInt32, userName: String, isActive: Bool, isLocked: Bool) {
        self.id = id
        self.userID = userID
        self.userName = userName
        self.isActive = isActive
        self.isLocked = isLocked
    }

    /// For people, such as `session 3 of alice active, unlocked`.
    public var description: String {
        "\(name) \(isActive ? "active" : "not active"), \(isLocked ? "locked" : "unlocked")"
    }

    var name: String { "session \(id) of \(userName)" }
}

/// The users whose sessions count. Remote sessions (`Remote`) and sessions without a user (greeters, services) never
/// count.
public enum SessionScope: Hashable, Sendable {
    /// All local sessions.
    case local
    /// The local sessions of one user.
    case user(UInt32)
}

/// The sessions that count, by object path.
struct SessionSnapshot: Hashable, Sendable {
    var sessions: [String: LoginSession] = [:]
}

/// The change between two snapshots: the sessions at which a user has arrived, in the order of their names.
struct SessionChange: Hashable, Sendable {
    /// Details of firings, such as `session 3 of alice was unlocked`.
    let arrivals: [String]

    /// One firing for each session that became active, locked or not, or that was unlocked while it is active.
    init(from old: SessionSnapshot, to new: SessionSnapshot) {
        arrivals = new.sessions.sorted { $0.key < $1.key }.compactMap { path, session in
            guard session.isActive else { return nil }
            guard let before = old.sessions[path], before.isActive else { return "\(session.name) became active" }
            return before.isLocked && !session.isLocked ? "\(session.name) was unlocked" : nil
        }
    }
}

/// The current sessions.
public struct SessionFact: Hashable, Sendable, CustomStringConvertible {
    /// Whether logind is available.
    public typealias Availability = SleepFact.Availability

    /// How many sessions the description names; the others are only counted.
    static let namedSessions = 3

    /// The sessions that count, active ones first. Without logind, the sessions that were last known.
    public var sessions: [LoginSession]
    public var logind: Availability

    public init(sessions: [LoginSession] = [], logind: Availability = .pending) {
        self.sessions = sessions
        self.logind = logind
    }

    init(_ snapshot: SessionSnapshot, logind: Availability) {
        let sorted = snapshot.sessions.sorted { one, other in
            one.value.isActive == other.value.isActive ? one.key < other.key : one.value.isActive
        }
        self.init(sessions: sorted.map(\.value), logind: logind)
    }

    /// For people, such as `session 3 of alice active, unlocked`.
    public var description: String {
        guard !sessions.isEmpty else { return "no session" }
        let named = sessions.prefix(Self.namedSessions).map(\.description).joined(separator: "; ")
        let rest = sessions.count - Self.namedSessions
        return rest > 0 ? "\(named); and \(rest) more" : named
    }
}
