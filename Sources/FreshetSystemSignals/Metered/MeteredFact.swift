/// Whether the connection of this machine is metered, according to NetworkManager.
package enum MeteredFact: Hashable, Sendable, CustomStringConvertible {
    /// NetworkManager has not answered yet.
    case pending
    /// NetworkManager is making a connection, and knows only afterwards whether it is metered. Its route may exist
    /// already.
    case connecting
    case metered(isGuess: Bool)
    case unmetered(isGuess: Bool)
    /// NetworkManager does not know it: there is no connection, or another program made it.
    case unknown
    /// NetworkManager cannot be asked. The reason is a sentence for people.
    case unavailable(reason: String)

    /// For people, such as `metered (guessed)`.
    package var description: String {
        switch self {
        case .pending: "asking NetworkManager"
        case .connecting: "NetworkManager is connecting"
        case .metered(let isGuess): isGuess ? "metered (guessed)" : "metered"
        case .unmetered(let isGuess): isGuess ? "not metered (guessed)" : "not metered"
        case .unknown, .unavailable: "not known"
        }
    }

    /// Why NetworkManager cannot be asked; nil: it can.
    package var unavailable: String? { if case .unavailable(let reason) = self { reason } else { nil } }

    /// Whether the connection is metered; nil: it is not known.
    package var isMetered: Bool? {
        switch self {
        case .metered: true
        case .unmetered: false
        case .pending, .connecting, .unknown, .unavailable: nil
        }
    }
}

/// NetworkManager's messages as values (NetworkManager reference, `org.freedesktop.NetworkManager`).
enum NetworkManagerMessage {
    static let name = "org.freedesktop.NetworkManager"
    static let path = "/org/freedesktop/NetworkManager"
    /// `NM_STATE_CONNECTING` of `State`.
    private static let connecting: UInt32 = 40

    /// The relevant part of `GetAll` or `PropertiesChanged`; a value is nil if the message does not contain it.
    struct Properties: Hashable, Sendable {
        /// ``MeteredFact/metered(isGuess:)``, ``MeteredFact/unmetered(isGuess:)`` or ``MeteredFact/unknown``.
        var metered: MeteredFact?
        var isConnecting: Bool?
        /// Whether a relevant property has changed whose value is not in the message.
        var isVague = false
    }

    /// The reply of `GetAll`, `a{sv}`. NetworkManager before version 1.0.6 has no `Metered`.
    static func properties(_ answer: [BusValue]) -> Properties {
        read(BusValue.variants(answer.first))
    }

    /// The arguments of `PropertiesChanged`, `sa{sv}as`; nil: they are too large.
    static func change(_ arguments: [BusValue]?) -> Properties {
        guard let arguments, arguments.count == 3, case .array(let invalidated) = arguments[2] else {
            return Properties(isVague: true)
        }
        var properties = read(BusValue.variants(arguments[1]))
        properties.isVague = ["Metered", "State"].contains { invalidated.contains(.string($0)) }
        return properties
    }

    private static func read(_ values: [String: BusValue]) -> Properties {
        Properties(
            metered: values["Metered"].map(metered), isConnecting: values["State"].map { $0 == .uint32(connecting) })
    }

    /// A value of `Metered` (`NMMetered`). Any other number or type is unknown.
    private static func metered(_ value: BusValue) -> MeteredFact {
        switch value {
        case .uint32(1): .metered(isGuess: false)
        case .uint32(2): .unmetered(isGuess: false)
        case .uint32(3): .metered(isGuess: true)
        case .uint32(4): .unmetered(isGuess: true)
        default: .unknown
        }
    }
}
