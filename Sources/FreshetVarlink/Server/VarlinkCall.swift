/// A call that a handler answers.
///
/// It is valid until the handler returns.
public struct VarlinkCall: Sendable {
    /// The method with its interface.
    public let method: String
    public let parameters: VarlinkParameters
    /// The client takes several replies: ``send(_:)`` may be used.
    public let wantsMore: Bool
    /// Nobody waits for an answer.
    public let isOneway: Bool
    /// Who calls.
    public let peer: VarlinkPeer

    let pause: @Sendable () async -> Void
    let write: @Sendable (VarlinkParameters) async throws(CancellationError) -> Void

    /// Lets other clients have the loop, if this one has used it for long enough. A handler whose work grows with the
    /// question, or with what the service has, calls it now and then.
    public func yield() async { await pause() }

    /// Sends a reply that others follow, and suspends until the kernel has taken it: a client that reads slowly slows
    /// its handler down, and no queue grows.
    ///
    /// One at a time; not after the handler has returned.
    ///
    /// - Throws: `org.varlink.service.ExpectedMore` if the client did not ask for several replies; `CancellationError`
    ///   if it went away.
    public func send(_ reply: VarlinkParameters) async throws {
        guard wantsMore else { throw VarlinkErrorReply.expectedMore }
        guard !isOneway else { return }
        try await write(reply)
    }
}
