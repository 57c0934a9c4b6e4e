import FreshetPipelines

/// The failures of the one limit that all sources share, in the same words.
enum SizeLimit {
    /// - Parameter source: who sends too much, such as a host or a path.
    static func exceeded(by source: String, limit: UInt64) -> RunFailure {
        RunFailure(
            .content,
            "\(source) has more than the \(Text.grouped(limit)) bytes that are allowed; "
                + "raise check.max-bytes if that is right")
    }

    /// - Parameter size: what was announced.
    static func exceeded(by source: String, announcing size: UInt64, limit: UInt64) -> RunFailure {
        RunFailure(
            .content,
            "\(source) has \(Text.grouped(size)) bytes, \(Text.grouped(limit)) are allowed; "
                + "raise check.max-bytes if that is right")
    }
}
