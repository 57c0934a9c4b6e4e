/// The names that the engine itself knows of those that occurrences carry.
package enum SignalName {
    package static let start = "start"
    package static let network = "network"
    package static let resume = "resume"
    package static let reload = "reload"
    package static let foreground = "foreground"
    package static let operation = "operator"
    package static let timer = "timer"
    package static let dbus = "dbus"
    package static let pipeline = "pipeline"
    package static let parameter = "parameter"
}

/// What a signal asks for; it decides what answers it.
package enum SignalKind: Hashable, Sendable {
    /// The surroundings changed and the copy may be out of date: any success since answers it.
    case environment
    /// Somebody knows that the copy is out of date: only a run that starts afterwards answers it.
    case demand

    /// The kind of the signal with this name. Names that the engine does not know (a parameter, a file, a message of
    /// D-Bus, another pipeline) are demands.
    package init(signal name: String) {
        switch name {
        case SignalName.start, SignalName.network, SignalName.resume, SignalName.foreground, SignalName.timer:
            self = .environment
        default:
            self = .demand
        }
    }
}
