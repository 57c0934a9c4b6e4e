/// The validators of a response, for a conditional request (RFC 9110, 8.8).
package struct Validators: Hashable, Sendable {
    /// The `ETag` field as received, with its quotes and `W/`.
    package var entityTag: String?
    /// The `Last-Modified` field as received.
    package var lastModified: String?

    package init(entityTag: String? = nil, lastModified: String? = nil) {
        self.entityTag = entityTag
        self.lastModified = lastModified
    }

    package var isEmpty: Bool { entityTag == nil && lastModified == nil }
}
