/// Validates an absolute `http` or `https` URL (RFC 3986). Error messages do not quote the URL: its user information
/// and its query may be secrets, also if they are misplaced.
enum URLText {
    /// The longest URL, in bytes: RFC 9110, 4.1 recommends that servers accept at least this length.
    static let maximumLength = 8000

    /// Checks a URL and returns its host, without port and brackets.
    static func host(of url: String) throws(ValueError) -> String {
        let bytes = Array(url.utf8)
        guard bytes.count <= maximumLength else { throw ValueError("is longer than \(maximumLength) bytes") }
        try checkCharacters(bytes)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
            throw ValueError("has to be an absolute URL", remedy: "begin it with https:// or http://")
        }
        switch String(decoding: bytes[..<colon], as: UTF8.self).lowercased() {
        case "http", "https":
            break
        case let scheme:
            throw ValueError(
                "has to begin with https:// or http://",
                remedy: scheme == "file" ? "for a local file, use the key 'file'" : nil)
        }
        let authority = bytes[(colon + 3)...].prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        guard !authority.contains(UInt8(ascii: "@")) else {
            throw ValueError.userInformation
        }
        let (host, port) = try divide(authority)
        try checkPort(port)
        return host
    }

    private static func checkCharacters(_ bytes: [UInt8]) throws(ValueError) {
        for (index, byte) in bytes.enumerated() {
            switch byte {
            case ..<0x21, 0x7F...:
                throw ValueError(
                    "contains a space, a control character or a character that is not ASCII",
                    remedy: "percent-encode it (a space is %20); write a host that is not ASCII in its form with xn--")
            // Braces of a placeholder; the names of placeholders are checked after the whole file is read.
            case UInt8(ascii: "{"), UInt8(ascii: "}"):
                break
            case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
                UInt8(ascii: "`"), UInt8(ascii: "|"):
                throw ValueError(
                    "contains the character \(String(Unicode.Scalar(byte)).quoted)", remedy: "percent-encode it")
            case UInt8(ascii: "#"):
                throw ValueError("has a fragment, which is never sent", remedy: "remove the '#' and what follows it")
            case UInt8(ascii: "%"):
                let digits = bytes[(index + 1)...].prefix(2)
                guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else {
                    throw ValueError("has a '%' without two hexadecimal digits", remedy: "write a literal '%' as %25")
                }
            default:
                break
            }
        }
    }

    /// The host, and the port if there is one.
    private static func divide(_ authority: ArraySlice<UInt8>) throws(ValueError) -> (String, ArraySlice<UInt8>?) {
        guard authority.first != UInt8(ascii: "[") else { return try divideBracketed(authority) }
        let colon = authority.firstIndex(of: UInt8(ascii: ":"))
        let name = authority[..<(colon ?? authority.endIndex)]
        guard !name.isEmpty else { throw ValueError("has no host") }
        // 255 bytes is the limit of DNS (RFC 1035, 2.3.4).
        guard isHostName(name), name.count <= 255 else {
            throw ValueError("has an invalid host name", remedy: "use letters, digits, '-' and '.'")
        }
        let port = colon.map { authority[($0 + 1)...] }
        guard port?.contains(UInt8(ascii: ":")) != true else {
            throw ValueError("has more than one ':' in its host", remedy: "write an IPv6 address in brackets")
        }
        return (String(decoding: name, as: UTF8.self), port)
    }

    /// Whether a name has letters, digits, `-`, `_`, and single dots after its beginning.
    private static func isHostName(_ name: ArraySlice<UInt8>) -> Bool {
        var last = UInt8(ascii: ".")
        for byte in name {
            switch byte {
            case UInt8(ascii: "."): if last == byte { return false }
            case UInt8(ascii: "-"), UInt8(ascii: "_"): break
            default: if !HTTPText.isLetterOrDigit(byte) { return false }
            }
            last = byte
        }
        return true
    }

    private static func divideBracketed(
        _ authority: ArraySlice<UInt8>
    ) throws(ValueError) -> (String, ArraySlice<UInt8>?) {
        guard let end = authority.firstIndex(of: UInt8(ascii: "]")) else { throw ValueError("has a '[' without a ']'") }
        let host = String(decoding: authority[..<end].dropFirst(), as: UTF8.self)
        guard IPAddress.isV6(host) else { throw ValueError("has no IPv6 address between its brackets") }
        let rest = authority[end...].dropFirst()
        guard rest.isEmpty || rest.first == UInt8(ascii: ":") else {
            throw ValueError("has text after the ']' of its address")
        }
        return (host, rest.isEmpty ? nil : rest.dropFirst())
    }

    private static func checkPort(_ port: ArraySlice<UInt8>?) throws(ValueError) {
        guard let port else { return }
        // At most five digits, so that the sum cannot overflow.
        let isNumber = port.count <= 5 && port.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let number = isNumber ? port.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } : 0
        guard (1...65_535).contains(number) else {
            throw ValueError("has a port that is not a number from 1 to 65535")
        }
    }
}

extension ValueError {
    /// The error of a URL with user information.
    static let userInformation = ValueError(
        "contains a user name or a password", remedy: "remove the part before '@' and use 'credential' instead")
}
