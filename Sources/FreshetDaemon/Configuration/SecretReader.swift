import FreshetControl
import FreshetEmitters
import FreshetPipelines
import FreshetSystemd

/// Reads the secrets of requests again: service credentials from `$CREDENTIALS_DIRECTORY`, and files.
struct SecretReader: SecretReading {
    private let credentials: Credentials
    private let files: SecretFileReader
    private let redactor: Redactor

    init(_ credentials: Credentials, paths: PathPool, _ redactor: Redactor) {
        self.credentials = credentials
        files = SecretFileReader(paths: paths)
        self.redactor = redactor
    }

    func secret(_ name: String) async throws(FetchError) -> String {
        let isFile = CredentialName.isPath(name)
        guard let path = isFile ? name : credentials.path(of: name) else {
            throw .failed(RunFailure(.local, CredentialError(.missing, name).description))
        }
        // The service manager restricts the directory of its credentials.
        let content = try await files.content(of: path, isGuarded: isFile)
        do throws(CredentialError) {
            let secret = try Credentials.secret(in: content, name)
            redactor.setSecrets(Self.forms(of: secret), of: name)
            return secret
        } catch {
            throw .failed(RunFailure(.local, error.description))
        }
    }

    /// Where the secret with this name is, and when it was written.
    func place(of name: String) async -> CredentialFile {
        let isFile = CredentialName.isPath(name)
        let path = isFile ? name : credentials.path(of: name)
        var written: Int64?
        if let path { written = await files.modificationTime(of: path) }
        return CredentialFile(name: isFile ? nil : name, path: path, written: written)
    }

    func redact(_ secret: String, of key: String) { redactor.setSecrets([secret], of: key) }

    /// The secret, and the forms of it and of its parts that a request may contain.
    static func forms(of secret: String) -> Set<String> {
        var forms: Set<String> = [secret]
        // The encoded form in the request, and the password alone.
        for part in [BasicCredentials.encoded(secret), BasicCredentials.password(secret)].compactMap({ $0 }) {
            forms.insert(part)
        }
        // In a value such as `Basic abc`, the last word is the secret.
        if let last = secret.split(separator: " ").dropFirst().last { forms.insert(String(last)) }
        return forms
    }
}
