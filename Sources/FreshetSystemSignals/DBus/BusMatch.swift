/// Selects signals of a bus: those that agree with all given values.
///
/// ```swift
/// try BusMatch(interface: "org.freedesktop.UPower", member: "DeviceAdded")
/// ```
///
/// Names follow the D-Bus specification, "Valid Names". A match that could never match, or that the bus would not
/// accept, throws when it is made.
public struct BusMatch: Hashable, Sendable {
    /// The error of an invalid match. The description is a sentence for people.
    public struct InvalidMatch: Error, Hashable, Sendable, CustomStringConvertible {
        /// The error, and how to correct it.
        public let description: String
    }

    /// The maximum length of a rule in bytes for dbus-daemon (DBUS_MAXIMUM_MATCH_RULE_LENGTH).
    public static let maximumRuleLength = 1_024
    /// The maximum length of a name in bytes (D-Bus specification, "Valid Names").
    static let maximumNameLength = 255

    /// The unique name of a connection (`:1.42`), or a well-known name. A well-known name stands for the connection
    /// that owns the name at the time.
    public let sender: String?
    /// The object's path.
    public let path: String?
    /// The object's path, or the path of an ancestor.
    public let pathNamespace: String?
    public let interface: String?
    public let member: String?
    /// The first argument, if it is a string.
    public let firstArgument: String?

    /// Values that are nil are ignored. `path` and `pathNamespace` exclude each other.
    public init(
        sender: String? = nil, path: String? = nil, pathNamespace: String? = nil, interface: String? = nil,
        member: String? = nil, firstArgument: String? = nil
    ) throws(InvalidMatch) {
        self.init(
            valid: sender, path: path, pathNamespace: pathNamespace, interface: interface, member: member,
            firstArgument: firstArgument)
        if let error { throw InvalidMatch(description: error) }
    }

    /// Makes a match from names that are known to be valid.
    init(
        valid sender: String?, path: String? = nil, pathNamespace: String? = nil, interface: String? = nil,
        member: String? = nil, firstArgument: String? = nil
    ) {
        self.sender = sender
        self.path = path
        self.pathNamespace = pathNamespace
        self.interface = interface
        self.member = member
        self.firstArgument = firstArgument
    }

    /// The rule for the bus (D-Bus specification, "Match Rules").
    var rule: String {
        var parts = ["type='signal'"]
        let keys = [
            ("sender", sender), ("path", path), ("path_namespace", pathNamespace), ("interface", interface),
            ("member", member), ("arg0", firstArgument),
        ]
        for case (let key, let value?) in keys {
            // Text within apostrophes is literal. An apostrophe itself is written outside of them, after a backslash.
            let quoted = value.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#)
            parts.append("\(key)='\(quoted)'")
        }
        return parts.joined(separator: ",")
    }

    /// The sender's name if it is a well-known name, whose owner can change.
    var wellKnownSender: String? {
        guard let sender, !sender.hasPrefix(":"), sender != BusName.daemon else { return nil }
        return sender
    }

    /// Whether a path agrees with the match.
    func accepts(path given: String) -> Bool {
        if let path { return given == path }
        guard let pathNamespace, pathNamespace != "/" else { return true }
        return given == pathNamespace || given.hasPrefix(pathNamespace + "/")
    }

    private var error: String? {
        if [sender, path, pathNamespace, interface, member, firstArgument].allSatisfy({ $0 == nil }) {
            return "the match selects every signal; set at least a sender, a path, an interface or a member"
        }
        if path != nil && pathNamespace != nil { return "both a path and a path namespace are set; remove one of them" }
        if let sender, !BusName.isBusName(sender) {
            return "'\(sender)' is not a bus name, such as org.example.Service or :1.42"
        }
        for path in [path, pathNamespace].compactMap({ $0 }) where !BusName.isObjectPath(path) {
            return "'\(path)' is not an object path, such as /org/example/Object"
        }
        if let interface, !BusName.isInterface(interface) {
            return "'\(interface)' is not an interface, such as org.example.Interface"
        }
        if let member, !BusName.isMember(member) {
            return "'\(member)' is not a signal name; use letters, digits and '_', no digit first"
        }
        if interface == "org.freedesktop.DBus.Local" || path == "/org/freedesktop/DBus/Local" {
            return "signals of org.freedesktop.DBus.Local do not come from the bus; remove this match"
        }
        if firstArgument?.utf8.contains(0) == true { return "the first argument must not contain a zero byte" }
        if rule.utf8.count > Self.maximumRuleLength {
            return "the match is longer than the \(Self.maximumRuleLength) bytes that a bus accepts; shorten it"
        }
        return nil
    }
}

/// Names according to the D-Bus specification, "Valid Names".
enum BusName {
    /// The bus itself. The bus writes the sender into each message, so no other sender can use this name.
    static let daemon = "org.freedesktop.DBus"

    static func isBusName(_ name: String) -> Bool {
        let isUnique = name.hasPrefix(":")
        return isDotted(isUnique ? name.dropFirst() : name[...], length: name.utf8.count) { byte, isFirst in
            isLetter(byte) || byte == UInt8(ascii: "-") || (isDigit(byte) && (isUnique || !isFirst))
        }
    }

    static func isInterface(_ name: String) -> Bool {
        isDotted(name[...], length: name.utf8.count) { byte, isFirst in isLetter(byte) || (isDigit(byte) && !isFirst) }
    }

    static func isMember(_ name: String) -> Bool {
        guard let first = name.utf8.first, name.utf8.count <= BusMatch.maximumNameLength else { return false }
        return !isDigit(first) && name.utf8.allSatisfy { isLetter($0) || isDigit($0) }
    }

    static func isObjectPath(_ path: String) -> Bool {
        if path == "/" { return true }
        guard path.hasPrefix("/") else { return false }
        return path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .allSatisfy { part in !part.isEmpty && part.allSatisfy { isLetter($0) || isDigit($0) } }
    }

    /// Two or more parts, separated by dots; `isAllowed` gets a byte, and whether it is the first of a part.
    private static func isDotted(_ name: Substring, length: Int, _ isAllowed: (UInt8, Bool) -> Bool) -> Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count >= 2, length <= BusMatch.maximumNameLength else { return false }
        return parts.allSatisfy { part in
            !part.isEmpty && part.indices.allSatisfy { isAllowed(part[$0], $0 == part.startIndex) }
        }
    }

    /// A letter according to the specification, which includes `_`.
    private static func isLetter(_ byte: UInt8) -> Bool {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || byte == UInt8(ascii: "_")
    }

    private static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
}
