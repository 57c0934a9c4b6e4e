import FreshetPipelines

/// Makes the failures of `check.max-bytes`, the limit that all sources share.
enum SizeLimit {
    /// - Parameters:
    ///   - source: the sender of too much data, such as a host or a path.
    ///   - limit: the most bytes that are allowed.
    ///   - role: the role of the request that received the data.
    static func exceeded(by source: String, limit: UInt64, role: RequestRole = .source) -> RunFailure {
        RunFailure(
            .content,
            "\(source) has more than the \(Text.grouped(limit)) bytes that are allowed; "
                + role.remedyForSize)
    }

    /// - Parameters:
    ///   - source: the sender of too much data, such as a host or a path.
    ///   - size: the announced size, in bytes.
    ///   - limit: the most bytes that are allowed.
    ///   - role: the role of the request that received the data.
    static func exceeded(
        by source: String, announcing size: UInt64, limit: UInt64, role: RequestRole = .source
    ) -> RunFailure {
        RunFailure(
            .content,
            "\(source) has \(Text.grouped(size)) bytes, \(Text.grouped(limit)) are allowed; "
                + role.remedyForSize)
    }
}
