/// Cryptographic functions for contents, and access to key files. The methods may wait for a disk; they suspend and
/// never block.
package protocol ContentVerifying: Sendable {
    /// The SHA-256 of a body, in lower-case hexadecimal digits. For a stored body it is the digest computed while it
    /// was received.
    func sha256(of body: FetchedBody) async throws(FetchError) -> String
    /// The BLAKE2b digest of a body, 64 bytes (RFC 7693).
    func blake2b(of body: FetchedBody) async throws(FetchError) -> [UInt8]
    /// Whether an Ed25519 signature (RFC 8032) of a message is valid for a key.
    func isSigned(_ message: [UInt8], _ signature: [UInt8], by key: [UInt8]) async throws(FetchError) -> Bool
    /// Reads a key file of this machine.
    func key(in path: String) async throws(FetchError) -> MinisignKey
}

/// Runs programs that inspect a snapshot before it becomes the copy.
package protocol CandidateInspecting: Sendable {
    /// Returns if the program accepts the candidate.
    ///
    /// Cancelling the task ends the program.
    ///
    /// - Throws: a failure of the kind `content` if the program rejects it; of another kind if the program failed.
    func inspect(
        _ candidate: FetchedBody, of definition: PipelineDefinition, by rule: InspectionRule
    ) async throws(FetchError)
}

/// The helpers for checks that the engine cannot make itself.
package struct CheckHelpers: Sendable {
    /// Nil: verification is not possible, and a pipeline that needs it fails.
    package var verifier: (any ContentVerifying)?
    /// Nil: inspection is not possible, and a pipeline that needs it fails.
    package var inspector: (any CandidateInspecting)?

    package init(verifier: (any ContentVerifying)? = nil, inspector: (any CandidateInspecting)? = nil) {
        self.verifier = verifier
        self.inspector = inspector
    }
}
