import CSystemd
import Testing

@testable import FreshetSystemSignals

/// The properties of a session in logind's format.
func logindSession(
    _ id: String, of name: String = "alice", user: UInt32 = 1_000, active: Bool = false, locked: Bool = false,
    remote: Bool = false, class sessionClass: String = "user"
) -> LogindMessage.Properties {
    LogindMessage.Properties(
        session: LoginSession(id: id, userID: user, userName: name, isActive: active, isLocked: locked),
        isRemote: remote, sessionClass: sessionClass)
}

func sessionPath(_ id: String) -> String { "\(LogindMessage.sessionPaths)/_3\(id)" }

/// The peer as logind with sessions.
extension BusPeer {
    /// Adds sessions without a signal.
    func setSessions(_ new: LogindMessage.Properties...) { setSessions(new) }

    func setSessions(_ new: [LogindMessage.Properties]) {
        sessions = Dictionary(uniqueKeysWithValues: new.map { (sessionPath($0.session.id), $0) })
    }

    func addSession(_ new: LogindMessage.Properties) throws {
        let path = sessionPath(new.session.id)
        sessions[path] = new
        try emit(
            "SessionNew", of: LogindMessage.manager, at: LogindMessage.path,
            [.string(new.session.id), .objectPath(path)])
    }

    func removeSession(_ id: String) throws {
        sessions[sessionPath(id)] = nil
        try emit(
            "SessionRemoved", of: LogindMessage.manager, at: LogindMessage.path,
            [.string(id), .objectPath(sessionPath(id))])
    }

    /// Changes properties and sends a signal with their values, like logind.
    func changeSession(_ id: String, active: Bool? = nil, locked: Bool? = nil) throws {
        let path = sessionPath(id)
        if let active { sessions[path]?.session.isActive = active }
        if let locked { sessions[path]?.session.isLocked = locked }
        var message: OpaquePointer?
        try #require(
            sd_bus_message_new_signal(bus, &message, path, LogindMessage.properties, "PropertiesChanged") >= 0)
        defer { sd_bus_message_unref(message) }
        let made = try #require(message)
        try #require(BusValue.string(LogindMessage.session).append(to: made))
        container("a", "{sv}", in: made) {
            if let active { entry("Active", .boolean(active), in: made) }
            if let locked { entry("LockedHint", .boolean(locked), in: made) }
        }
        container("a", "s", in: made) {}
        try #require(sd_bus_send(bus, made, nil) >= 0)
        try #require(sd_bus_flush(bus) >= 0)
    }

    func answerSessions(_ call: OpaquePointer) -> Int32 {
        listings += 1
        return answer(call) { reply in
            container("a", "(susso)", in: reply) {
                for (path, properties) in sessions {
                    let session = properties.session
                    container("r", "susso", in: reply) {
                        for value: BusValue in [
                            .string(session.id), .uint32(session.userID), .string(session.userName), .string("seat0"),
                            .objectPath(path),
                        ] { _ = value.append(to: reply) }
                    }
                }
            }
        }
    }

    func answerSession(_ call: OpaquePointer) -> Int32 {
        guard let path = sd_bus_message_get_path(call), let properties = sessions[String(cString: path)] else {
            return 0  // sd-bus replies that there is no such object
        }
        let session = properties.session
        return answer(call) { reply in
            container("a", "{sv}", in: reply) {
                entry("Id", .string(session.id), in: reply)
                entry("Name", .string(session.userName), in: reply)
                entry("Active", .boolean(session.isActive), in: reply)
                entry("LockedHint", .boolean(session.isLocked), in: reply)
                entry("Remote", .boolean(properties.isRemote), in: reply)
                entry("Class", .string(properties.sessionClass), in: reply)
                container("e", "sv", in: reply) {
                    _ = BusValue.string("User").append(to: reply)
                    container("v", "(uo)", in: reply) {
                        container("r", "uo", in: reply) {
                            _ = BusValue.uint32(session.userID).append(to: reply)
                            _ = BusValue.objectPath("/org/freedesktop/login1/user/_1000").append(to: reply)
                        }
                    }
                }
            }
        }
    }

    func answer(_ call: OpaquePointer, _ fill: (OpaquePointer) -> Void) -> Int32 {
        var reply: OpaquePointer?
        sd_bus_message_new_method_return(call, &reply)
        guard let reply else { return 0 }
        defer { sd_bus_message_unref(reply) }
        fill(reply)
        sd_bus_send(bus, reply, nil)
        return 1
    }

    func container(_ type: Unicode.Scalar, _ contents: String, in message: OpaquePointer, _ fill: () -> Void) {
        sd_bus_message_open_container(message, CChar(type.value), contents)
        fill()
        sd_bus_message_close_container(message)
    }

    /// An entry of a dictionary with a text, a truth value or an unsigned number.
    func entry(_ key: String, _ value: BusValue, in message: OpaquePointer) {
        container("e", "sv", in: message) {
            _ = BusValue.string(key).append(to: message)
            let type =
                switch value {
                case .string: "s"
                case .uint32: "u"
                default: "b"
                }
            container("v", type, in: message) { _ = value.append(to: message) }
        }
    }
}
