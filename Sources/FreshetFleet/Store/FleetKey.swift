package import FreshetModel

/// The name of a pipeline's messages in the buckets: `PIPELINE.FINGERPRINT`.
package struct FleetKey: Hashable, Sendable, CustomStringConvertible {
    package let description: String

    /// - Parameter pipeline: letters, digits, `-`, `_` and `.`. A dot would separate two tokens of a subject; `=` stands
    ///   for it, which no name of a pipeline has.
    package init(pipeline: String, fingerprint: ContentDigest) {
        description = "\(pipeline.replacing(".", with: "=")).\(fingerprint)"
    }

    /// From a subject in a bucket.
    init(stored text: some StringProtocol) { description = String(text) }

    package init(_ subject: FleetSubject) { self.init(pipeline: subject.pipeline, fingerprint: subject.fingerprint) }
}

/// The buckets of a fleet: streams of JetStream that keep the last message of each subject.
package enum FleetBucket: String, CaseIterable, Hashable, Sendable {
    /// The signed records.
    case head
    /// The contents, in chunks.
    case body
    /// The claims.
    case claim
    /// The members.
    case status

    /// The name of the stream.
    package var stream: String { "KV_FT_\(rawValue)" }

    /// What the subjects of its messages begin with.
    package var prefix: String { "$KV.FT_\(rawValue)." }

    /// What the subjects of its republished messages begin with; nil: they are not republished.
    package var republished: String? {
        switch self {
        case .head: "ft.news."
        case .claim: "ft.claim."
        case .body, .status: nil
        }
    }
}
