import Glibc

/// What RFC 9110 and RFC 3986 allow in the parts of a request.
enum HTTPText {
    /// The longest URL, in bytes: what RFC 9110, 4.1 asks every server to take.
    static let maximumURLLength = 8000
    /// The longest value of a header, in bytes: what servers commonly take for all headers together.
    static let maximumHeaderValueLength = 8192

    /// Headers that belong to the message's framing or that the conditional request needs for itself; a second one
    /// would contradict the first.
    private static let ownHeaders: Set<String> = [
        "accept-encoding", "connection", "content-length", "expect", "if-match", "if-modified-since", "if-none-match",
        "if-range", "if-unmodified-since", "keep-alive", "proxy-connection", "range", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]

    /// A token (RFC 9110, 5.6.2).
    static func isToken(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { isLetterOrDigit($0) || "!#$%&'*+-.^_`|~".utf8.contains($0) }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }

    static func checkHeaderName(_ name: String) throws(ValueFault) {
        guard isToken(name) else {
            throw ValueFault("is not the name of a header", remedy: "letters, digits and '-' make one; no ':' or space")
        }
        guard !ownHeaders.contains(name.lowercased()) else {
            throw ValueFault("is a header that Freshet sets by itself", remedy: "leave it out")
        }
    }

    /// A header's value (RFC 9110, 5.5). Never quoted in a message: it may be a secret.
    static func checkHeaderValue(_ value: String) throws(ValueFault) {
        guard value.utf8.allSatisfy({ $0 == 0x09 || (0x20...0x7E).contains($0) }) else {
            throw ValueFault(
                "holds a line break, a control character or one that is not ASCII",
                remedy: "a header is one line of ASCII; encode other text as the origin expects it")
        }
        guard value.first?.isWhitespace != true, value.last?.isWhitespace != true else {
            throw ValueFault("begins or ends with a space", remedy: "remove it")
        }
        guard value.utf8.count <= maximumHeaderValueLength else {
            throw ValueFault("is longer than \(maximumHeaderValueLength) bytes")
        }
    }

    /// Checks an absolute `http` or `https` URL and returns its host, without port and brackets. Messages do not quote
    /// the URL: its user information and query may be secrets.
    static func host(ofURL url: String) throws(ValueFault) -> String {
        guard url.utf8.count <= maximumURLLength else {
            throw ValueFault("is longer than \(maximumURLLength) bytes")
        }
        guard url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            let remedy = "percent-encode it (a space is %20; a host that is not ASCII has a form that begins with xn--)"
            throw ValueFault("holds a space, a control character or one that is not ASCII", remedy: remedy)
        }
        guard !url.contains(where: { "{}".contains($0) }) else {
            throw ValueFault(
                "holds a brace", remedy: "parameters are not supported by this version; a literal brace is %7B or %7D")
        }
        if let character = url.first(where: { "\"<>\\^`|".contains($0) }) {
            throw ValueFault("holds the character \(String(character).quoted)", remedy: "percent-encode it")
        }
        guard let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://") else {
            throw ValueFault("has to be an absolute URL", remedy: "begin it with https:// or http://")
        }
        guard ["http", "https"].contains(url[..<colon].lowercased()) else {
            throw ValueFault(
                "has to begin with https:// or http://",
                remedy: url[..<colon].lowercased() == "file"
                    ? "for a file of this machine there is the key 'file'" : nil)
        }
        guard !url.contains("#") else {
            throw ValueFault("has a fragment, which is never sent", remedy: "remove the '#' and what follows it")
        }
        try checkPercentEncoding(url)
        let authority = url[colon...].dropFirst(3).prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else {
            throw ValueFault(
                "names a user or a password", remedy: "remove what stands before '@' and send it as a header instead")
        }
        return try host(ofAuthority: authority)
    }

    private static func checkPercentEncoding(_ url: String) throws(ValueFault) {
        let bytes = Array(url.utf8)
        for index in bytes.indices where bytes[index] == UInt8(ascii: "%") {
            guard index + 2 < bytes.count, isHexDigit(bytes[index + 1]), isHexDigit(bytes[index + 2]) else {
                throw ValueFault("has a '%' without two hexadecimal digits", remedy: "a literal '%' is %25")
            }
        }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool { Character(Unicode.Scalar(byte)).isHexDigit }

    private static func host(ofAuthority authority: Substring) throws(ValueFault) -> String {
        let host: Substring
        var port: Substring?
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { throw ValueFault("has a '[' without a ']'") }
            host = authority[..<end].dropFirst()
            guard IPAddress.isV6(String(host)) else { throw ValueFault("has no IPv6 address between its brackets") }
            let rest = authority[end...].dropFirst()
            guard rest.isEmpty || rest.hasPrefix(":") else { throw ValueFault("has text after the ']' of its address") }
            port = rest.isEmpty ? nil : rest.dropFirst()
        } else {
            let colon = authority.firstIndex(of: ":") ?? authority.endIndex
            host = authority[..<colon]
            port = colon == authority.endIndex ? nil : authority[colon...].dropFirst()
            guard !host.isEmpty else { throw ValueFault("has no host") }
            let isName = host.utf8.allSatisfy { isLetterOrDigit($0) || "-._".utf8.contains($0) }
            guard isName, !host.hasPrefix("."), !host.contains(".."), host.utf8.count <= 255 else {
                throw ValueFault(
                    "has the host \(host.quoted), which is no host name",
                    remedy: authority.filter { $0 == ":" }.count > 1 ? "an IPv6 address stands in brackets" : nil)
            }
        }
        if let port {
            guard port.utf8.count <= 5, port.utf8.allSatisfy({ (48...57).contains($0) }), let number = Int(port),
                (1...65535).contains(number)
            else { throw ValueFault("has the port \(port.quoted); a port is a number from 1 to 65535") }
        }
        return String(host)
    }
}

/// Literal addresses.
enum IPAddress {
    static func isV4(_ text: String) -> Bool {
        var address = in_addr()
        return inet_pton(AF_INET, text, &address) == 1
    }

    static func isV6(_ text: String) -> Bool {
        var address = in6_addr()
        return inet_pton(AF_INET6, text, &address) == 1
    }
}

extension ValueKind where Value == String {
    /// A literal IPv4 or IPv6 address that one can go to.
    static let address = ValueKind(name: "an IPv4 or IPv6 address") { scalar throws(ValueFault) in
        guard IPAddress.isV4(scalar.text) || IPAddress.isV6(scalar.text) else {
            throw ValueFault(
                "has to be an IPv4 or IPv6 address, not \(scalar.text.quoted)",
                remedy: "names are not looked up here, and brackets, ports and interfaces have no place in it")
        }
        guard scalar.text != "0.0.0.0", scalar.text != "::" else {
            throw ValueFault("is the address that means none")
        }
        return scalar.text
    }
}
