/// The address of a bus (D-Bus specification, "Message Bus").
enum BusAddress {
    /// Returns nil if the environment has no address of a session bus: then there is no session.
    static func of(_ bus: BusConnection.Bus, environment: (String) -> String?) -> String? {
        switch bus {
        case .system:
            return given(environment("DBUS_SYSTEM_BUS_ADDRESS")) ?? "unix:path=/run/dbus/system_bus_socket"
        case .session:
            // The second is the default of sd_bus_open_user(3) and of user managers.
            return given(environment("DBUS_SESSION_BUS_ADDRESS"))
                ?? given(environment("XDG_RUNTIME_DIR")).map { "unix:path=\(escape($0 + "/bus"))" }
        }
    }

    private static func given(_ value: String?) -> String? { value.flatMap { $0.isEmpty ? nil : $0 } }

    /// "Server Addresses": all other bytes are written as % and two hexadecimal digits.
    static func escape(_ value: String) -> String {
        var escaped = ""
        for byte in value.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"),
                UInt8(ascii: "."), UInt8(ascii: "*"):
                escaped.unicodeScalars.append(UnicodeScalar(byte))
            default:
                escaped += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return escaped
    }
}
