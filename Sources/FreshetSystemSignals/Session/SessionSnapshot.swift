/// A session of a person at this machine, as logind has it (org.freedesktop.login1(5)).
public struct LoginSession: Hashable, Sendable, CustomStringConvertible {
    /// logind's name of it, such as `3` or `c1`.
    public var id: String
    public var userID: UInt32
    public var userName: String
    /// It is in front on its seat.
    public var isActive: Bool
    /// Its screen is locked, says its desktop (`LockedHint`).
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

/// Whose sessions count. Those of other machines (`Remote`) and those without a person (greeters, services) never do.
public enum SessionScope: Hashable, Sendable {
    /// Every local one.
    case local
    /// The local ones of one user.
    case user(UInt32)
}

/// The sessions that count, by the paths of their objects.
struct SessionSnapshot: Hashable, Sendable {
    var sessions: [String: LoginSession] = [:]
}

/// What is new between two snapshots: sessions at which somebody has arrived, in the order of their names.
struct SessionChange: Hashable, Sendable {
    /// Details of firings, such as `session 3 of alice was unlocked`.
    let arrivals: [String]

    /// One firing for each session that became active, locked or not, or whose lock was taken off while it is active.
    init(from old: SessionSnapshot, to new: SessionSnapshot) {
        arrivals = new.sessions.sorted { $0.key < $1.key }.compactMap { path, session in
            guard session.isActive else { return nil }
            guard let before = old.sessions[path], before.isActive else { return "\(session.name) became active" }
            return before.isLocked && !session.isLocked ? "\(session.name) was unlocked" : nil
        }
    }
}

/// Which sessions there are, as far as is known: a fact that can be asked for at any time.
public struct SessionFact: Hashable, Sendable, CustomStringConvertible {
    /// Whether logind can be heard.
    public typealias Availability = SleepFact.Availability

    /// How many sessions the description names; the rest is counted.
    static let namedSessions = 3

    /// The sessions that count, active ones first. Without logind those that were there when it was heard last.
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
