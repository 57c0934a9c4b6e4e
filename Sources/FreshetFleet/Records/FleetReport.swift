package import FreshetModel

/// What a member reports about its copy of one pipeline.
package struct FleetReport: Hashable, Sendable {
    /// Why content does not do its work on a member.
    package struct Failure: Hashable, Sendable {
        package enum Kind: String, Hashable, Sendable {
            /// The member's own checks reject the content.
            case rejected
            /// The content is published, and a hook fails.
            case hook
        }

        package var kind: Kind
        package var digest: ContentDigest
        /// For people.
        package var text: String

        package init(_ kind: Kind, _ digest: ContentDigest, _ text: String) {
            self.kind = kind
            self.digest = digest
            self.text = text
        }
    }

    /// The content of the copy; nil: there is no copy.
    package var copy: ContentDigest?
    package var failure: Failure?

    package init(copy: ContentDigest? = nil, failure: Failure? = nil) {
        self.copy = copy
        self.failure = failure
    }

    /// The text of the report.
    var text: [UInt8] {
        var writer = MemberWriter()
        writer.add("copy", copy?.description)
        writer.add("failure", failure?.kind.rawValue)
        writer.add("failed", failure?.digest.description)
        writer.add("error", failure.map { Self.cut($0.text) })
        return writer.finish()
    }

    /// The longest error in a report, in bytes: as JSON, a byte takes up to six.
    private static let longestError = 400

    /// A text without the part that is too long. A character may have any number of bytes, so bytes are counted.
    private static func cut(_ text: String) -> String {
        guard text.utf8.count > longestError else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: longestError)
        while text.unicodeScalars.index(after: text.unicodeScalars.index(before: end)) != end {
            end = text.utf8.index(before: end)
        }
        return String(text.unicodeScalars[..<end])
    }

    /// Reads a text of another member; nil: it is not a report.
    init?(text: [UInt8]) {
        guard text.count <= FleetClaim.Holder.longest, let reader = MemberReader(text) else { return nil }
        if reader.has("copy") {
            guard let digest = try? reader.digest("copy") else { return nil }
            copy = digest
        }
        guard reader.has("failure") else { return }
        guard let name = try? reader.name("failure"), let kind = Failure.Kind(rawValue: name),
            let digest = try? reader.digest("failed")
        else { return nil }
        failure = Failure(kind, digest, ((try? reader.text("error")) ?? nil) ?? "")
    }
}

/// What an operator wants from the members that fetch.
package enum FleetWant: Hashable, Sendable {
    /// A check of the origin now.
    case refresh
    /// A roll-out of this content is halted or goes on.
    case rollOut(FleetOrder.Kind, ContentDigest)

    /// The key of a message about a pipeline: a later one of the same kind replaces it.
    package func key(_ pipeline: String) -> String {
        switch self {
        case .refresh: "\(FleetKey.token(of: pipeline)).refresh"
        case .rollOut: "\(FleetKey.token(of: pipeline)).roll-out"
        }
    }

    /// The keys of all messages about a pipeline.
    static func keys(_ pipeline: String) -> [String] {
        ["refresh", "roll-out"].map { "\(FleetKey.token(of: pipeline)).\($0)" }
    }

    /// The text of the message.
    package var text: [UInt8] {
        var writer = MemberWriter()
        switch self {
        case .refresh: writer.add("want", "refresh")
        case .rollOut(let kind, let digest):
            writer.add("want", kind.rawValue)
            writer.add("digest", digest.description)
        }
        return writer.finish()
    }

    /// Nil: it is not such a text.
    init?(text: [UInt8]) {
        guard text.count <= FleetClaim.Holder.longest, let reader = MemberReader(text),
            let name = try? reader.name("want")
        else { return nil }
        if name == "refresh" {
            self = .refresh
        } else {
            guard let kind = FleetOrder.Kind(rawValue: name), let digest = try? reader.digest("digest") else {
                return nil
            }
            self = .rollOut(kind, digest)
        }
    }
}
