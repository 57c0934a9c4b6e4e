/// Why a call got no answer, or an answer that is an error.
public struct BusError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The error's name on the bus, such as `org.freedesktop.DBus.Error.AccessDenied`.
    public let name: String
    /// What the other side says about it, for people.
    public let message: String

    init(_ name: String, _ message: String) {
        self.name = name
        self.message = message
    }

    public var description: String { message.isEmpty ? name : "\(message) (\(name))" }

    static let disconnected = BusError("org.freedesktop.DBus.Error.Disconnected", "there is no connection to the bus")
    static let tooMany = BusError(
        "org.freedesktop.DBus.Error.LimitsExceeded", "\(BusLink.maximumCalls) calls wait for an answer already")
    static let invalid = BusError(
        "org.freedesktop.DBus.Error.InvalidArgs", "a name is not valid, or an argument is not of a basic type")
    static let unreadable = BusError(
        "org.freedesktop.DBus.Error.InconsistentMessage", "the answer is too large, or not what was asked for")
}
