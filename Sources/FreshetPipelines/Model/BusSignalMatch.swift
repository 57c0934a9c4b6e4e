/// A D-Bus signal match that a pipeline subscribes to: a signal matches if it agrees with all given fields. One element
/// of `refresh.dbus`.
package struct BusSignalMatch: Hashable, Sendable {
    package enum Bus: String, CaseIterable, Hashable, Sendable {
        case system, session
    }

    package var bus: Bus
    package var sender: String?
    package var path: String?
    package var pathNamespace: String?
    package var interface: String?
    package var member: String?
    package var firstArgument: String?

    package init(
        bus: Bus = .system, sender: String? = nil, path: String? = nil, pathNamespace: String? = nil,
        interface: String? = nil, member: String? = nil, firstArgument: String? = nil
    ) {
        self.bus = bus
        self.sender = sender
        self.path = path
        self.pathNamespace = pathNamespace
        self.interface = interface
        self.member = member
        self.firstArgument = firstArgument
    }
}

extension BusSignalMatch: CustomStringConvertible {
    /// Text for people, such as `system org.freedesktop.UPower.DeviceAdded`; different matches have different texts.
    package var description: String {
        var text = bus.rawValue
        if interface != nil || member != nil { text += " \(interface ?? "*").\(member ?? "*")" }
        if let sender { text += " from \(sender)" }
        if let path { text += " at \(path)" }
        if let pathNamespace { text += " below \(pathNamespace)" }
        if let firstArgument { text += " of '\(firstArgument)'" }
        return text
    }
}
