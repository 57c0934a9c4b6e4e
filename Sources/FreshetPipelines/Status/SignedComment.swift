/// The trusted comment of a verified signature, with the content that it belongs to.
package struct SignedComment: Hashable, Sendable {
    /// SHA-256 of the content that became the copy, in lower-case hexadecimal digits.
    package var digest: String
    /// One line.
    package var comment: String

    package init(digest: String, comment: String) {
        self.digest = digest
        self.comment = comment
    }
}
