package import FreshetNATS

/// Why an operation on a bucket failed.
package enum FleetStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    case nats(NATSError)
    /// JetStream refuses the operation; the code is its `err_code`.
    case refused(code: UInt64, reason: String)
    /// The answer is not one of JetStream.
    case malformed(String)
    /// A chunk of the content is missing.
    case incomplete

    package var description: String {
        switch self {
        case .nats(.noResponders):
            "the server has no such bucket; create it with 'freshetctl fleet setup', and enable JetStream in the server"
        case .nats(let error): error.description
        case .refused(let code, let reason): "JetStream refuses it: \(reason) (error \(code))"
        case .malformed(let what): "the answer of JetStream has no valid '\(what)'"
        case .incomplete: "a part of the content is not in the fleet's bucket any more"
        }
    }

    /// Whether the last message of the subject is another one than expected.
    /// (10164: the same for an expected subject, since nats-server 2.11.)
    var isConflict: Bool { code == 10_071 || code == 10_164 }

    private var code: UInt64? {
        guard case .refused(let code, _) = self else { return nil }
        return code
    }
}
