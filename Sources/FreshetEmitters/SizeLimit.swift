import FreshetPipelines

/// Makes the failures of `check.max-bytes`, the limit that all sources share.
enum SizeLimit {
    /// - Parameter source: the sender of too much data, such as a host or a path.
    static func exceeded(by source: String, limit: UInt64) -> RunFailure {
        RunFailure(
            .content,
            "\(source) has more than the \(Text.grouped(limit)) bytes that are allowed; "
                + "raise check.max-bytes if that is right")
    }

    /// - Parameter size: the announced size, in bytes.
    static func exceeded(by source: String, announcing size: UInt64, limit: UInt64) -> RunFailure {
        RunFailure(
            .content,
            "\(source) has \(Text.grouped(size)) bytes, \(Text.grouped(limit)) are allowed; "
                + "raise check.max-bytes if that is right")
    }
}
