/// A generation that readers do not find, since it is too old for them; its content is kept.
package struct WithdrawnCopy: Codable, Hashable, Sendable {
    package var number: Int64
    /// Bytes.
    package var size: Int64
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    package var committedAt: Int64
    /// Since when readers do not find it.
    package var since: Int64

    package init(number: Int64, size: Int64, digest: String, committedAt: Int64, since: Int64) {
        self.number = number
        self.size = size
        self.digest = digest
        self.committedAt = committedAt
        self.since = since
    }
}

extension ControlMessage {
    /// Parameters of the error `Withdrawn`.
    package struct Withdrawn: Codable, Hashable, Sendable {
        package var name: String
        package var number: Int64
        package var since: Int64
    }
}
