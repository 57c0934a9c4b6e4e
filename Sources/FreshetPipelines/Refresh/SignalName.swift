/// The signal names that the engine itself uses.
package enum SignalName {
    package static let start = "start"
    package static let network = "network"
    package static let resume = "resume"
    package static let reload = "reload"
    package static let foreground = "foreground"
    package static let metered = "metered"
    package static let operation = "operator"
    package static let timer = "timer"
    package static let dbus = "dbus"
    package static let pipeline = "pipeline"
    package static let parameter = "parameter"
    /// Another member of the fleet has checked: a shared pipeline takes the result.
    package static let fleet = "fleet"
    /// The copy was lost: no pipeline subscribes to it, and each receives it for its own copy.
    package static let loss = "loss"
}

/// The kind of a signal; it decides what answers the signal.
package enum SignalKind: Hashable, Sendable {
    /// An environment signal: the environment changed and the copy may be out of date. Any later success answers it.
    case environment
    /// A request signal: the copy is known to be out of date. Only a run that starts afterwards answers it.
    case request

    /// The kind of the signal with this name. All names that the engine does not know (a parameter, a file, a D-Bus
    /// message, another pipeline) are requests.
    package init(signal name: String) {
        switch name {
        case SignalName.start, SignalName.network, SignalName.resume, SignalName.foreground, SignalName.metered,
            SignalName.timer:
            self = .environment
        default:
            self = .request
        }
    }
}
