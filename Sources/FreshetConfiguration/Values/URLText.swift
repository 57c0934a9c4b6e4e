/// An absolute `http` or `https` URL (RFC 3986), taken apart as far as a check needs. Messages do not quote it: its user
/// information and its query may be secrets, also where they stand at the wrong place.
enum URLText {
    /// The longest URL, in bytes: what RFC 9110, 4.1 asks every server to take.
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
                remedy: scheme == "file" ? "for a file of this machine there is the key 'file'" : nil)
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
                    "holds a space, a control character or one that is not ASCII",
                    remedy:
                        "percent-encode it (a space is %20; a host that is not ASCII has a form that begins with xn--)")
            // A place for a value; which ones there may be is seen when all of the file is read.
            case UInt8(ascii: "{"), UInt8(ascii: "}"):
                break
            case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
                UInt8(ascii: "`"), UInt8(ascii: "|"):
                throw ValueError(
                    "holds the character \(String(Unicode.Scalar(byte)).quoted)", remedy: "percent-encode it")
            case UInt8(ascii: "#"):
                throw ValueError("has a fragment, which is never sent", remedy: "remove the '#' and what follows it")
            case UInt8(ascii: "%"):
                let digits = bytes[(index + 1)...].prefix(2)
                guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else {
                    throw ValueError("has a '%' without two hexadecimal digits", remedy: "a literal '%' is %25")
                }
            default:
                break
            }
        }
    }

    /// The host, and what follows its colon if there is one.
    private static func divide(_ authority: ArraySlice<UInt8>) throws(ValueError) -> (String, ArraySlice<UInt8>?) {
        guard authority.first != UInt8(ascii: "[") else { return try divideBracketed(authority) }
        let parts = authority.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = parts.first, !name.isEmpty else { throw ValueError("has no host") }
        let host = String(decoding: name, as: UTF8.self)
        let isName = name.allSatisfy { HTTPText.isLetterOrDigit($0) || "-._".utf8.contains($0) }
        // 255 bytes is what the name system can carry (RFC 1035, 2.3.4).
        guard isName, name.first != UInt8(ascii: "."), !host.contains(".."), name.count <= 255 else {
            throw ValueError("has a host that is not a host name", remedy: "write it in letters, digits, '-' and '.'")
        }
        let port = parts.dropFirst().first
        guard port?.contains(UInt8(ascii: ":")) != true else {
            throw ValueError("has more than one ':' in its host", remedy: "an IPv6 address stands in brackets")
        }
        return (host, port)
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
        // Five digits at most, so that the sum cannot overflow.
        let isNumber = port.count <= 5 && port.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let number = isNumber ? port.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } : 0
        guard (1...65_535).contains(number) else {
            throw ValueError("has a port that is not a number from 1 to 65535")
        }
    }
}

extension ValueError {
    /// Of a URL.
    static let userInformation = ValueError(
        "names a user or a password", remedy: "remove what stands before '@' and send it as a header instead")
}
