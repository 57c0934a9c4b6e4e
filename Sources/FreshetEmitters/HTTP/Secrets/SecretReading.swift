package import FreshetPipelines

/// Reads the secrets that requests carry, when a request needs them.
package protocol SecretReading: Sendable {
    /// Reads a secret again, and redacts it from now on. It does not block the caller's thread.
    ///
    /// - Parameter name: the name of a service credential, or the absolute path of a file.
    func secret(_ name: String) async throws(FetchError) -> String
    /// Redacts a secret that an origin has issued, from now on, together with the one before.
    ///
    /// - Parameter key: identifies the secret; a later secret of the same key replaces it.
    func redact(_ secret: String, of key: String)
}
