/// Looks at contents by cryptography, and reads the keys for it. Its methods may take as long as a disk does; they suspend
/// and never block.
package protocol ContentVerifying: Sendable {
    /// The SHA-256 of a body, in lower-case hexadecimal digits. Of one that was kept aside it is that which was made when
    /// it came.
    func sha256(of body: FetchedBody) async throws(FetchError) -> String
    /// The BLAKE2b digest of a body, 64 bytes (RFC 7693).
    func blake2b(of body: FetchedBody) async throws(FetchError) -> [UInt8]
    /// Whether a signature by Ed25519 (RFC 8032) is that of a message by a key.
    func isSigned(_ message: [UInt8], _ signature: [UInt8], by key: [UInt8]) async throws(FetchError) -> Bool
    /// The key in a file of this machine.
    func key(in path: String) async throws(FetchError) -> MinisignKey
}

/// Has programs of this machine look at what would become a copy.
package protocol CandidateInspecting: Sendable {
    /// Passes what the program accepts.
    ///
    /// Cancelling the task ends the program.
    ///
    /// - Throws: a failure of the kind `content` if it does not; of another kind if it could not say.
    func inspect(
        _ candidate: FetchedBody, of definition: PipelineDefinition, by rule: InspectionRule
    ) async throws(FetchError)
}

/// Those who help with checks that are none of the engine's own.
package struct CheckHelpers: Sendable {
    /// Nil: nobody can, and a content that is to be proven is refused.
    package var prover: (any ContentVerifying)?
    /// Nil: nobody can, and a content that is to be looked at is refused.
    package var inspector: (any CandidateInspecting)?

    package init(prover: (any ContentVerifying)? = nil, inspector: (any CandidateInspecting)? = nil) {
        self.prover = prover
        self.inspector = inspector
    }
}
