/// A secret that the requests of a pipeline carry: its place, never its value.
package struct CredentialFile: Codable, Hashable, Sendable {
    /// The name of the credential of the service; nil: the configuration names the file.
    package var name: String?
    /// The absolute path of the file; nil: the service has no credentials.
    package var path: String?
    /// When the file was written; nil: it cannot be found.
    package var written: Int64?

    package init(name: String? = nil, path: String? = nil, written: Int64? = nil) {
        self.name = name
        self.path = path
        self.written = written
    }
}
