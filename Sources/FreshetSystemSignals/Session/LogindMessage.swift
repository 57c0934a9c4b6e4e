/// logind's messages about sessions as values (org.freedesktop.login1(5)).
enum LogindMessage {
    static let name = "org.freedesktop.login1"
    static let path = "/org/freedesktop/login1"
    static let manager = "org.freedesktop.login1.Manager"
    static let session = "org.freedesktop.login1.Session"
    static let sessionPaths = "/org/freedesktop/login1/session"
    static let properties = "org.freedesktop.DBus.Properties"

    /// A row of `ListSessions`.
    struct Row: Hashable, Sendable {
        var path: String
        var userID: UInt32
    }

    /// The relevant properties of a session.
    struct Properties: Hashable, Sendable {
        var session: LoginSession
        var isRemote: Bool
        var sessionClass: String

        func counts(in scope: SessionScope) -> Bool {
            guard !isRemote, sessionClass == "user" else { return false }
            return switch scope {
            case .local: true
            case .user(let user): session.userID == user
            }
        }
    }

    /// The relevant part of `PropertiesChanged` of a session.
    struct Change: Hashable, Sendable {
        var isActive: Bool?
        var isLocked: Bool?
        /// Whether a relevant property has changed whose value is not in the message.
        var isVague = false
    }

    /// The reply of `ListSessions`, `a(susso)`; nil if it is malformed.
    static func rows(_ answer: [BusValue]) -> [Row]? {
        guard case .array(let values)? = answer.first else { return nil }
        return values.compactMap { value in
            guard case .structure(let fields) = value, fields.count == 5, case .uint32(let user) = fields[1],
                case .objectPath(let path) = fields[4]
            else { return nil }
            return Row(path: path, userID: user)
        }
    }

    /// The reply of `GetAll`, `a{sv}`; nil if a relevant property is missing.
    static func properties(_ answer: [BusValue]) -> Properties? {
        let values = BusValue.variants(answer.first)
        guard case .string(let id)? = values["Id"], case .string(let name)? = values["Name"],
            case .structure(let user)? = values["User"], case .uint32(let userID)? = user.first,
            case .boolean(let isActive)? = values["Active"], case .boolean(let isRemote)? = values["Remote"],
            case .string(let sessionClass)? = values["Class"]
        else { return nil }
        // systemd before version 230 has no LockedHint.
        let isLocked = values["LockedHint"] == .boolean(true)
        return Properties(
            session: LoginSession(
                id: id, userID: userID, userName: name, isActive: isActive, isLocked: isLocked),
            isRemote: isRemote, sessionClass: sessionClass)
    }

    /// The arguments of `PropertiesChanged`, `sa{sv}as`.
    static func change(_ arguments: [BusValue]) -> Change {
        guard arguments.count == 3, case .array(let invalidated) = arguments[2] else { return Change(isVague: true) }
        let values = BusValue.variants(arguments[1])
        var change = Change()
        if case .boolean(let isActive)? = values["Active"] { change.isActive = isActive }
        if case .boolean(let isLocked)? = values["LockedHint"] { change.isLocked = isLocked }
        // Newer versions can change the class of a session.
        change.isVague =
            values["Class"] != nil || ["Active", "LockedHint", "Class"].contains { invalidated.contains(.string($0)) }
        return change
    }
}
