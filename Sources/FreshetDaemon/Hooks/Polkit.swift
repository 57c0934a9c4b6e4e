import Glibc

/// The rule for polkit(8) that permits the service to reload units.
enum Polkit {
    /// The file for the rule. The prefix 50 is that of the distributions' own rules.
    static let ruleFile = "/etc/polkit-1/rules.d/50-freshet.rules"

    /// A file with a rule that permits a user to reload these units, and nothing else. Unit names are compared as a
    /// whole, with the name that the service manager gives to the unit, and not with an alias.
    static func rule(for units: [String], user: String) -> String {
        let names = units.map { "        \(literal($0))" }.joined(separator: ",\n")
        return """
            // Written by 'freshetctl check --polkit': the hooks of Freshet's service may reload these units.
            polkit.addRule(function(action, subject) {
                var units = [
            \(names)
                ];
                if (action.id == "org.freedesktop.systemd1.manage-units" && subject.user == \(literal(user)) &&
                    action.lookup("verb") == "reload" && units.indexOf(action.lookup("unit")) >= 0) {
                    return polkit.Result.YES;
                }
            });

            """
    }

    /// A text as a string literal of JavaScript. Only letters, digits and some signs stay as they are, so that no text
    /// can end the literal.
    static func literal(_ text: String) -> String {
        var result = "\""
        for unit in text.utf16 {
            if let byte = UInt8(exactly: unit), isPlain(byte) {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else if unit == 0x5C {
                result += "\\\\"
            } else {
                let digits = String(unit, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return result + "\""
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-_.:@".utf8.contains(byte)
        }
    }

    /// The name of a user, or the user's number if there is no name. Blocks if the user database is on the network.
    static func name(of user: uid_t) -> String {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { buffer in
            guard let text = buffer.baseAddress,
                getpwuid_r(user, &entry, text, buffer.count, &found) == 0, let found,
                let name = found.pointee.pw_name
            else { return "\(user)" }
            return String(cString: name)
        }
    }
}
