/// A kind of value: how its text is read, and its name in messages.
struct ValueKind<Value: Sendable>: Sendable {
    /// The name with an article and an example: "a duration such as 15min".
    var name: String { makeName() }
    let read: @Sendable (Node.Scalar) throws(ValueError) -> Value
    /// Only an error needs the name, which may be long.
    private let makeName: @Sendable () -> String

    init(
        name: @autoclosure @escaping @Sendable () -> String,
        read: @escaping @Sendable (Node.Scalar) throws(ValueError) -> Value
    ) {
        makeName = name
        self.read = read
    }
}

/// The error of a value that is not of the expected kind: the rest of a sentence that begins with the key, and the
/// remedy.
struct ValueError: Error, Hashable {
    var message: String
    var remedy: String?

    init(_ message: String, remedy: String? = nil) {
        self.message = message
        self.remedy = remedy
    }
}

extension ValueKind where Value == Bool {
    /// `true` or `false`. YAML's other words for them, such as `no`, are rejected: they surprise users.
    static let boolean = ValueKind(name: "true or false") { scalar throws(ValueError) in
        switch scalar.text {
        case "true" where scalar.isPlain: return true
        case "false" where scalar.isPlain: return false
        default: throw .notBoolean(scalar)
        }
    }
}

extension ValueError {
    static func notBoolean(_ scalar: Node.Scalar) -> ValueError {
        let remedy: String? =
            switch scalar.text.lowercased() {
            case "yes", "on", "true", "y": "write true, in lower case and without quotes"
            case "no", "off", "false", "n": "write false, in lower case and without quotes"
            default: nil
            }
        return ValueError("has to be true or false, not \(scalar.text.quoted)", remedy: remedy)
    }
}

extension ValueKind where Value == Int {
    /// A whole number in decimal digits.
    static func integer(_ range: ClosedRange<Int>) -> ValueKind {
        ValueKind(name: "a number from \(range.lowerBound) to \(range.upperBound)") { scalar throws(ValueError) in
            guard scalar.text.utf8.allSatisfy({ (48...57).contains($0) }), let value = Int(scalar.text),
                range.contains(value)
            else {
                throw ValueError(
                    "has to be a number from \(range.lowerBound) to \(range.upperBound), not \(scalar.text.quoted)")
            }
            return value
        }
    }
}

extension ValueKind where Value == UInt32 {
    /// Permission bits as a quoted octal number, as chmod(1) takes them.
    static let fileMode = ValueKind(name: "a quoted octal number such as \"0644\"") { scalar throws(ValueError) in
        let digits = scalar.text
        guard (3...4).contains(digits.utf8.count), digits.utf8.allSatisfy({ (48...55).contains($0) }),
            let mode = UInt32(digits, radix: 8)
        else {
            throw ValueError(
                "has to be three or four octal digits such as \"0644\", not \(digits.quoted)")
        }
        // YAML's versions disagree about what a plain 0644 is: 420, 644 or text.
        guard !scalar.isPlain else {
            throw ValueError("needs quotes", remedy: "write \"\(digits)\": without quotes, YAML reads a number")
        }
        guard mode & ~0o777 == 0 else {
            throw ValueError("has bits beyond 0777", remedy: "remove the set-user-ID, set-group-ID and sticky bits")
        }
        guard mode & 0o400 != 0 else {
            throw ValueError("does not let the service itself read the copy", remedy: "add 0400")
        }
        return mode
    }
}

extension ValueKind where Value == String {
    /// One line of text.
    static let line = ValueKind(name: "one line of text") { scalar throws(ValueError) in
        guard !scalar.text.unicodeScalars.contains(where: \.actsOnTerminal) else {
            throw ValueError("has to be one line without control characters")
        }
        guard scalar.text.utf8.count <= 500 else { throw ValueError("is longer than 500 bytes") }
        return scalar.text
    }

    /// Any text without NUL characters.
    static let text = ValueKind(name: "text") { scalar throws(ValueError) in
        guard !scalar.text.unicodeScalars.contains("\0") else { throw ValueError("contains a NUL character") }
        return scalar.text
    }

    /// A jq program. It is not compiled here: this module does not link libjq.
    static let program = ValueKind(name: "a jq program such as '.keys | length > 0'") { scalar throws(ValueError) in
        let text = try ValueKind.text.read(scalar)
        guard !text.allSatisfy(\.isWhitespace) else {
            throw ValueError("is an empty program", remedy: "leave the key out")
        }
        return text
    }

    static let absolutePath = ValueKind(name: "an absolute path") { scalar throws(ValueError) in
        let path = try ValueKind.text.read(scalar)
        guard path.hasPrefix("/") else {
            throw ValueError(
                "has to be an absolute path, not \(path.quoted)",
                remedy: path.hasPrefix("~")
                    ? "write the full path of the home directory"
                    : "begin it with '/': the service has its own working directory")
        }
        // PATH_MAX of Linux is 4096 bytes, including the NUL.
        guard path.utf8.count < 4096 else { throw ValueError("is longer than 4095 bytes, the limit for a path") }
        guard !path.hasSuffix("/") else { throw ValueError("is a directory", remedy: "write the path of a file") }
        return path
    }

    /// A name in the cache directory. Linux allows 255 bytes; the difference is for the suffixes of temporary names.
    static let fileName = ValueKind(name: "a file name such as jwks.json") { scalar throws(ValueError) in
        let name = scalar.text
        guard !name.utf8.contains(UInt8(ascii: "/")) else {
            throw ValueError(
                "has to be a file name without '/'", remedy: "the cache keeps all files in one directory, current/")
        }
        guard !name.hasPrefix(".") else {
            throw ValueError("must not begin with a '.'", remedy: "choose a visible name")
        }
        guard !name.isEmpty, !name.unicodeScalars.contains(where: \.actsOnTerminal) else {
            throw ValueError("has to be a file name without control characters")
        }
        guard name.utf8.count <= 200 else { throw ValueError("is longer than 200 bytes") }
        return name
    }

    /// An Internet media type without parameters (RFC 9110, 8.3.1), in lower case.
    static let mediaType = ValueKind(name: "a media type such as application/json") { scalar throws(ValueError) in
        let parts = scalar.text.split(separator: "/", omittingEmptySubsequences: false)
        guard !scalar.text.contains(";") else {
            throw ValueError("has to be a media type without parameters", remedy: "remove the ';' and what follows it")
        }
        guard !scalar.text.contains("*") else {
            throw ValueError("must not contain '*'", remedy: "list the expected types")
        }
        guard parts.count == 2, parts.allSatisfy({ HTTPText.isToken($0) }) else {
            throw ValueError("has to be a media type such as application/json, not \(scalar.text.quoted)")
        }
        return scalar.text.lowercased()
    }
}
