/// The characters that RFC 9110 allows in headers.
enum HTTPText {
    /// The longest value of a header, in bytes: the usual limit of servers for all headers together.
    static let maximumHeaderValueLength = 8192

    /// Headers that Freshet sets itself, for the framing of the message and for conditional requests.
    private static let reservedHeaders: Set<String> = [
        "accept-encoding", "connection", "content-length", "expect", "if-match", "if-modified-since", "if-none-match",
        "if-range", "if-unmodified-since", "keep-alive", "proxy-connection", "range", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]

    /// A token (RFC 9110, 5.6.2).
    static func isToken(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { isLetterOrDigit($0) || "!#$%&'*+-.^_`|~".utf8.contains($0) }
    }

    static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }

    static func checkHeaderName(_ name: String) throws(ValueError) {
        guard isToken(name) else {
            throw ValueError(
                "is not a valid header name", remedy: "use letters, digits and '-', without ':' and spaces")
        }
        guard !reservedHeaders.contains(name.lowercased()) else {
            throw ValueError("is a header that Freshet sets itself", remedy: "leave it out")
        }
    }

    /// A header's value (RFC 9110, 5.5). Never quoted in a message: it may be a secret.
    static func checkHeaderValue(_ value: String) throws(ValueError) {
        guard value.utf8.allSatisfy({ $0 == 0x09 || (0x20...0x7E).contains($0) }) else {
            throw ValueError(
                "contains a line break, a control character or a character that is not ASCII",
                remedy: "a header is one line of ASCII; encode other text as the origin expects it")
        }
        guard value.first?.isWhitespace != true, value.last?.isWhitespace != true else {
            throw ValueError("begins or ends with a space", remedy: "remove it")
        }
        guard value.utf8.count <= maximumHeaderValueLength else {
            throw ValueError("is longer than \(maximumHeaderValueLength) bytes")
        }
    }
}
