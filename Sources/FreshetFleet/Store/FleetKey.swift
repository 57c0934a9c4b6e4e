package import FreshetModel

/// The name of a pipeline's messages in the buckets: `PIPELINE.FINGERPRINT`.
package struct FleetKey: Hashable, Sendable, CustomStringConvertible {
    package let description: String

    /// - Parameter pipeline: letters, digits, `-`, `_` and `.`. A dot would separate two tokens of a subject; `=` stands
    ///   for it, which no name of a pipeline has.
    package init(pipeline: String, fingerprint: ContentDigest) {
        description = "\(Self.token(of: pipeline)).\(fingerprint)"
    }

    /// The token for a pipeline.
    package static func token(of pipeline: String) -> String { pipeline.replacing(".", with: "=") }

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
    /// What members report about their copies.
    case report
    /// What operators want.
    case want

    /// The name of the stream.
    package var stream: String { "KV_FT_\(rawValue)" }

    /// What the subjects of its messages begin with.
    package var prefix: String { "$KV.FT_\(rawValue)." }

    /// What the subjects of its republished messages begin with; nil: they are not republished.
    package var republished: String? {
        switch self {
        case .head: "ft.news."
        case .claim: "ft.claim."
        case .want: "ft.want."
        case .body, .status, .report: nil
        }
    }

    /// The buckets that a site may mirror.
    package static let mirrored: [FleetBucket] = [.head, .body]

    /// Whether its messages have a lifetime.
    var hasLifetimes: Bool {
        switch self {
        case .claim, .status, .report: true
        case .head, .body, .want: false
        }
    }
}
