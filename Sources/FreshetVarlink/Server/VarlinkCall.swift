/// A call that a handler answers.
///
/// It is valid until the handler returns.
public struct VarlinkCall: Sendable {
    /// The method with its interface.
    public let method: String
    public let parameters: VarlinkParameters
    /// Whether the client takes several replies: then ``send(_:)`` may be called.
    public let acceptsMore: Bool
    /// Whether the client takes no reply.
    public let isOneway: Bool
    /// The caller.
    public let peer: VarlinkPeer

    /// The connection, for the operations below; nil for an ``VarlinkInterface/ImmediateHandler``.
    let connection: VarlinkConnection?

    /// Gives other clients a turn if this client has used the loop for its share of time. A handler whose work grows
    /// with the parameters, or with the service's data, calls it repeatedly.
    public func yield() async { await connection?.takeTurn() }

    /// Declares that from now on the call only waits for events and sends them. If the server has no free connection
    /// for a newcomer, such a call gives way before a call that works.
    public func followsEvents() { connection?.callFollows() }

    /// Sends a reply that is not the last one, and suspends until the kernel has taken it: a client that reads slowly
    /// slows its handler down, and no queue grows. If a client reads nothing for ``VarlinkServer/Limits/silence``, the
    /// server closes the connection.
    ///
    /// Call it once at a time, and not after the handler has returned.
    ///
    /// - Throws: `org.varlink.service.ExpectedMore` if the client does not accept several replies; `CancellationError`
    ///   if it went away.
    public func send(_ reply: consuming VarlinkParameters) async throws {
        guard acceptsMore else { throw VarlinkErrorReply.expectedMore }
        guard !isOneway else { return }
        try await connection?.write(VarlinkReplyMessage(parameters: reply, continues: true))
    }
}
