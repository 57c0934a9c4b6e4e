/// Whether this machine runs on battery, according to UPower.
package enum PowerFact: Hashable, Sendable, CustomStringConvertible {
    /// UPower has not answered yet.
    case pending
    case battery
    case mains
    /// UPower has no answer that can be used.
    case unknown
    /// UPower cannot be asked. The reason is a sentence for people.
    case unavailable(reason: String)

    /// For people, such as `on battery`.
    package var description: String {
        switch self {
        case .pending: "asking UPower"
        case .battery: "on battery"
        case .mains: "on mains power"
        case .unknown, .unavailable: "not known"
        }
    }

    /// Why UPower cannot be asked; nil: it can.
    package var unavailable: String? { if case .unavailable(let reason) = self { reason } else { nil } }
}

/// UPower's messages as values (UPower reference, `org.freedesktop.UPower`).
enum UPowerMessage {
    static let name = "org.freedesktop.UPower"
    static let path = "/org/freedesktop/UPower"
    private static let onBattery = "OnBattery"

    /// A change of `OnBattery`.
    enum Change: Hashable, Sendable {
        case fact(PowerFact)
        /// It has changed, but the message does not have its value.
        case vague
        /// Another property has changed.
        case other
    }

    /// The reply of `GetAll`, `a{sv}`.
    static func fact(_ answer: [BusValue]) -> PowerFact {
        fact(BusValue.variants(answer.first)[onBattery])
    }

    /// The arguments of `PropertiesChanged`, `sa{sv}as`; nil: they are too large.
    static func change(_ arguments: [BusValue]?) -> Change {
        guard let arguments, arguments.count == 3, case .array(let invalidated) = arguments[2] else { return .vague }
        if let value = BusValue.variants(arguments[1])[onBattery] { return .fact(fact(value)) }
        return invalidated.contains(.string(onBattery)) ? .vague : .other
    }

    private static func fact(_ value: BusValue?) -> PowerFact {
        guard case .boolean(let isOnBattery) = value else { return .unknown }
        return isOnBattery ? .battery : .mains
    }
}
