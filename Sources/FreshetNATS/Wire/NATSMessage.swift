/// A message that the server delivered to a subscription.
public struct NATSMessage: Hashable, Sendable {
    /// The subject to which the message was sent. It comes from another client: bytes that are not UTF-8 are replaced.
    public var subject: String
    /// The subject for a reply; nil: no reply is expected.
    public var reply: String?
    public var headers: NATSHeaders
    public var payload: [UInt8]

    public init(subject: String, reply: String? = nil, headers: NATSHeaders = NATSHeaders(), payload: [UInt8] = []) {
        self.subject = subject
        self.reply = reply
        self.headers = headers
        self.payload = payload
    }

    /// Whether the server says that nothing subscribes to the subject of a request: an empty message with the status
    /// 503.
    public var isNoResponders: Bool { headers.status == 503 && payload.isEmpty }

    /// Whether this is the end of several replies: an empty message with the status 204.
    public var isEndOfBatch: Bool { headers.status == 204 && payload.isEmpty }
}

/// An operation of the server, as the parser returns it.
enum ServerOperation: Hashable, Sendable {
    case info(NATSServerInfo)
    /// A message for the subscription of this number.
    case message(NATSMessage, subscription: UInt64)
    /// A message of which nothing was kept, because it is too long or its headers are malformed. The connection goes
    /// on: another client can send such a message.
    case unusable(subject: String, subscription: UInt64)
    case ping
    case pong
    case ok
    /// The server's error, escaped and shortened.
    case error(String)
}
