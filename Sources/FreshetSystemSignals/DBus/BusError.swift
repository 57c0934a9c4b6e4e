/// The error of a call: there was no reply, or the reply was an error.
public struct BusError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The error's name on the bus, such as `org.freedesktop.DBus.Error.AccessDenied`.
    public let name: String
    /// The explanation of the other side, for people.
    public let message: String

    init(_ name: String, _ message: String) {
        self.name = name
        self.message = message
    }

    public var description: String { message.isEmpty ? name : "\(message) (\(name))" }

    static let disconnected = BusError("org.freedesktop.DBus.Error.Disconnected", "there is no connection to the bus")
    static let tooMany = BusError(
        "org.freedesktop.DBus.Error.LimitsExceeded", "\(BusLink.maximumCalls) calls already wait for a reply")
    static let invalid = BusError(
        "org.freedesktop.DBus.Error.InvalidArgs", "a name or an argument is invalid")
    static let startsProgram = BusError(
        "org.freedesktop.DBus.Error.BadAddress", "its address starts a program, which this process may not do")
    package static let unreadable = BusError(
        "org.freedesktop.DBus.Error.InconsistentMessage", "the reply is too large or has unexpected types")
}
