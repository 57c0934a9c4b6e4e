public import FreshetEventLoop

/// Why an operation, or a connection, failed. Each description is one sentence without secrets.
public enum NATSError: Error, Hashable, Sendable, CustomStringConvertible {
    // The caller's input.
    /// The text is not a subject, or not a pattern of subjects.
    case invalidSubject(String)
    /// The name or the value of the header field of this name has characters that are not allowed.
    case invalidHeader(String)
    /// The text is not the URL of a server; the reason follows.
    case invalidServer(String)
    /// A URL with `http` whose host is not an address of this machine.
    case plainTextToNetwork(host: String)
    /// The credential is not an NKEY seed of a user; the text says why, without the seed.
    case invalidSeed(String)
    /// The text is not the public NKEY of a user; the text says why.
    case invalidPublicKey(String)

    // Limits.
    /// The message is longer than the server accepts, in bytes.
    case payloadTooLarge(Int, limit: Int)
    /// The server does not accept headers.
    case headersUnsupported
    /// The bytes that wait to be sent are at their limit: the server reads too slowly.
    case outgoingBufferFull(limit: Int)
    /// The number of requests that wait for a reply is at its limit.
    case tooManyRequests(limit: Int)
    /// The number of subscriptions is at its limit.
    case tooManySubscriptions(limit: Int)
    /// The replies to a request exceed their limit: ``NATSReplyLimits``.
    case repliesTooLarge
    /// A reply cannot be used: it is longer than ``NATSLimits/payload``, or its headers are malformed.
    case replyUnusable

    // Requests.
    /// There is no connection.
    case notConnected
    /// The connection ended before the reply. The server may have received the request.
    case connectionLost
    /// No reply arrived in time.
    case timedOut
    /// Nothing subscribes to the subject (status 503).
    case noResponders
    /// The task was cancelled.
    case cancelled
    /// The client has stopped.
    case stopped

    // The connection.
    /// The connection could not be made, or broke; the text says why.
    case connectionFailed(host: String, reason: String)
    /// The server refuses the credential, or the server's rights changed; the text is the server's.
    case refused(host: String, reason: String)
    /// The server closed the connection; the text is its last error, if it sent one.
    case closed(host: String, reason: String?)
    /// The server requires TLS on a plain connection.
    case tlsRequired(host: String)
    /// The server violated the protocol; the text says how.
    case violation(host: String, String)
    /// The server does not permit the operation; the text is the server's.
    case notPermitted(String)
    case system(SystemCallError)

    public var description: String {
        switch self {
        case .invalidSubject(let text):
            "'\(Text.escaped(text))' is not a subject: write tokens of printable ASCII characters, separated by dots"
        case .invalidHeader(let name):
            "the header field '\(Text.escaped(name))' has characters that are not allowed in its name or value"
        case .invalidServer(let reason): "the URL of a server cannot be used: \(reason)"
        case .plainTextToNetwork(let host):
            "http is for addresses of this machine only; use https for \(host)"
        case .invalidSeed(let reason): "the credential is not an NKEY seed of a user: \(reason)"
        case .invalidPublicKey(let reason): "this is not the public NKEY of a user: \(reason)"
        case .payloadTooLarge(let size, let limit): "the message has \(size) bytes; the server accepts \(limit)"
        case .headersUnsupported: "the server does not accept headers"
        case .outgoingBufferFull(let limit): "\(limit) bytes wait to be sent; the server reads too slowly"
        case .tooManyRequests(let limit): "\(limit) requests wait for replies; try again later"
        case .tooManySubscriptions(let limit): "there are \(limit) subscriptions, and no more are allowed"
        case .repliesTooLarge: "the replies exceed the limit of the request"
        case .replyUnusable: "the reply is too long, or has malformed headers"
        case .notConnected: "there is no connection to a NATS server"
        case .connectionLost: "the connection to the NATS server ended before the reply"
        case .timedOut: "no reply arrived in time"
        case .noResponders: "nothing subscribes to the subject of the request"
        case .cancelled: "the request was cancelled"
        case .stopped: "the client has stopped"
        case .connectionFailed(let host, let reason): "no connection to \(host): \(reason)"
        case .refused(let host, let reason): "\(host) refuses the credential: \(reason)"
        case .closed(let host, let reason):
            reason.map { "\(host) closed the connection: \($0)" } ?? "\(host) closed the connection"
        case .tlsRequired(let host): "\(host) requires TLS; use https, and set handshake_first: true in the server"
        case .violation(let host, let reason): "\(host) violated the protocol: \(reason)"
        case .notPermitted(let text): "the server does not permit the operation: \(text)"
        case .system(let error): error.description
        }
    }
}

/// Untrusted text for messages.
enum Text {
    /// The most bytes of a server's text that are kept.
    static let longest = 256

    /// The text, shortened and with control and format characters escaped, so that it cannot move a cursor or end a
    /// line.
    static func escaped(_ text: some Collection<UInt8>) -> String {
        escaped(String(decoding: text.prefix(longest), as: UTF8.self))
    }

    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars.prefix(longest) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                result += "\\u{\(String(scalar.value, radix: 16))}"
            default:
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// libcurl quotes the URL of a proxy that it cannot use, with its password. The quoted text may be an invalid URL,
    /// so all of it before the last `@` is removed.
    static func withoutUserInformation(_ text: String) -> String {
        guard let at = text.utf8.lastIndex(of: UInt8(ascii: "@")) else { return text }
        let before = text[..<at]
        let scheme = before.firstRange(of: "://")?.upperBound
        let quote = before.firstIndex(of: "'").map { before.index(after: $0) }
        return "\(text[..<(scheme ?? quote ?? text.startIndex)])…\(text[at...])"
    }
}
