/// A generation that is not published any more, because it is past its maximum age; its content is kept.
package struct WithdrawnCopy: Codable, Hashable, Sendable {
    package var number: Int64
    /// Bytes.
    package var size: Int64
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    package var committedAt: Int64
    /// When it was withdrawn.
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
