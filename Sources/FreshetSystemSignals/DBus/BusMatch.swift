/// Which signals of a bus are wanted: those that agree with all that is given.
///
/// ```swift
/// try BusMatch(interface: "org.freedesktop.UPower", member: "DeviceAdded")
/// ```
///
/// Names are those of the D-Bus specification, "Valid Names"; a match that could never match, or that the bus would not
/// take, is refused when it is made.
public struct BusMatch: Hashable, Sendable {
    /// Why a match is refused. The description is a sentence for people.
    public struct InvalidMatch: Error, Hashable, Sendable, CustomStringConvertible {
        /// What is wrong, and what would be right.
        public let description: String
    }

    /// The most bytes of a rule that dbus-daemon takes (DBUS_MAXIMUM_MATCH_RULE_LENGTH).
    public static let maximumRuleLength = 1_024
    /// The most bytes of a name (D-Bus specification, "Valid Names").
    static let maximumNameLength = 255

    /// The unique name of a connection (`:1.42`), or a well-known name: then whoever owns that at the time, and nobody
    /// else.
    public let sender: String?
    /// The object's path.
    public let path: String?
    /// The object's path, or that of one above it.
    public let pathNamespace: String?
    public let interface: String?
    public let member: String?
    /// The first argument, if that is a string.
    public let firstArgument: String?

    /// What is nil is not looked at. `path` and `pathNamespace` do not go together.
    public init(
        sender: String? = nil, path: String? = nil, pathNamespace: String? = nil, interface: String? = nil,
        member: String? = nil, firstArgument: String? = nil
    ) throws(InvalidMatch) {
        self.init(
            valid: sender, path: path, pathNamespace: pathNamespace, interface: interface, member: member,
            firstArgument: firstArgument)
        if let fault { throw InvalidMatch(description: fault) }
    }

    /// From names that are known to be valid.
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
            // Within apostrophes all is literal; an apostrophe itself stands outside of them, after a backslash.
            let quoted = value.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#)
            parts.append("\(key)='\(quoted)'")
        }
        return parts.joined(separator: ",")
    }

    /// The sender's name if it is one that changes hands.
    var wellKnownSender: String? {
        guard let sender, !sender.hasPrefix(":"), sender != BusName.daemon else { return nil }
        return sender
    }

    /// Whether the path is one that is wanted.
    func accepts(path given: String) -> Bool {
        if let path { return given == path }
        guard let pathNamespace, pathNamespace != "/" else { return true }
        return given == pathNamespace || given.hasPrefix(pathNamespace + "/")
    }

    private var fault: String? {
        if [sender, path, pathNamespace, interface, member, firstArgument].allSatisfy({ $0 == nil }) {
            return "a match of everything: name at least a sender, a path, an interface or a member"
        }
        if path != nil && pathNamespace != nil { return "both a path and a path name space: one of them is enough" }
        if let sender, !BusName.isBusName(sender) {
            return "'\(sender)' is no bus name: such as org.example.Service, or :1.42"
        }
        for path in [path, pathNamespace].compactMap({ $0 }) where !BusName.isObjectPath(path) {
            return "'\(path)' is no object path: such as /org/example/Object"
        }
        if let interface, !BusName.isInterface(interface) {
            return "'\(interface)' is no interface: such as org.example.Interface"
        }
        if let member, !BusName.isMember(member) {
            return "'\(member)' is no signal's name: letters, digits and '_', and no digit first"
        }
        if interface == "org.freedesktop.DBus.Local" || path == "/org/freedesktop/DBus/Local" {
            return "what a connection says to itself does not come from the bus: leave out org.freedesktop.DBus.Local"
        }
        if firstArgument?.utf8.contains(0) == true { return "the first argument has a zero byte: no string has one" }
        if rule.utf8.count > Self.maximumRuleLength {
            return "longer than the \(Self.maximumRuleLength) bytes that a bus takes for a match: shorten it"
        }
        return nil
    }
}

/// Names as the D-Bus specification, "Valid Names", has them.
enum BusName {
    /// The bus itself. The bus writes the sender into each message, so that nobody else can be it.
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

    /// Two parts or more with dots between them; `isAllowed` gets a byte, and whether it is a part's first.
    private static func isDotted(_ name: Substring, length: Int, _ isAllowed: (UInt8, Bool) -> Bool) -> Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count >= 2, length <= BusMatch.maximumNameLength else { return false }
        return parts.allSatisfy { part in
            !part.isEmpty && part.indices.allSatisfy { isAllowed(part[$0], $0 == part.startIndex) }
        }
    }

    /// A letter in the specification's sense: `_` is one.
    private static func isLetter(_ byte: UInt8) -> Bool {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || byte == UInt8(ascii: "_")
    }

    private static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
}
