/// Names of header fields and of parameters whose values are secrets.
package enum SecretName {
    private static let parts = ["auth", "cookie", "key", "password", "secret", "token"]

    /// Whether one of `auth`, `cookie`, `key`, `password`, `secret`, `token` stands in it; case does not matter.
    package static func matches(_ name: some StringProtocol) -> Bool {
        let name = name.lowercased()
        return parts.contains { name.contains($0) }
    }
}

/// A credential of the service that a source needs.
package struct NeededCredential: Hashable, Sendable {
    /// What its file has to hold.
    package enum Content: Hashable, Sendable {
        /// One line.
        case line
        /// One line, `user:password` (RFC 7617, 2).
        case userAndPassword
        /// Whatever a library reads from a file, such as a certificate.
        case file
    }

    package var name: String
    /// The keys that lead to its name in the pipeline's file.
    package var keys: [String]
    package var content: Content
}

extension PipelineDefinition {
    /// The permission bits of its copies: what is configured, else 0644, or 0640 if the source is asked with a secret.
    package var cacheMode: UInt32 {
        if let mode = cache.mode { return mode }
        return httpSources.contains(where: \.isPrivate) ? 0o640 : 0o644
    }

    /// The credentials that its sources need.
    package var credentials: [NeededCredential] { stage.credentials(at: ["source"]) }

    private var httpSources: [HTTPSource] {
        sources.compactMap { if case .http(let source) = $0 { source } else { nil } }
    }

    /// What its configuration holds of secrets in plain text: values of header fields and of the URL's parameters, as
    /// far as their names say so, and defaults of parameters with such names. What an origin sends back of them must not
    /// be shown either.
    package var plainSecrets: [String] {
        parameters.filter(\.isSecret).map(\.defaultValue)
            + (httpSources + check.proofSources).flatMap(\.plainSecrets)
    }
}

extension StageDefinition {
    fileprivate func credentials(at keys: [String]) -> [NeededCredential] {
        var credentials: [NeededCredential] = []
        switch source {
        case .http(let source): credentials += source.credentials(below: keys)
        case .joined(let sources):
            for source in sources { credentials += source.stage.credentials(at: ["sources", source.name]) }
        case .command, .file, .copy: break
        }
        return credentials + (each?.stage.credentials(at: keys + ["each"]) ?? [])
    }
}

extension HTTPSource {
    fileprivate func credentials(below keys: [String]) -> [NeededCredential] {
        var credentials = headers.compactMap { header -> NeededCredential? in
            guard case .credential(let name, let form) = header.value else { return nil }
            return NeededCredential(
                name: name, keys: keys + (form == .field ? ["headers", header.name, "credential"] : ["credential"]),
                content: form == .basic ? .userAndPassword : .line)
        }
        if let proof = clientCertificate {
            credentials.append(
                NeededCredential(name: proof.certificate, keys: keys + ["client-certificate"], content: .file))
            if let key = proof.key {
                credentials.append(NeededCredential(name: key, keys: keys + ["client-key"], content: .file))
            }
        }
        return credentials
    }

    fileprivate var plainSecrets: [String] {
        var secrets: [String] = []
        for header in headers where header.isSecret {
            guard case .text(let value) = header.value else { continue }
            // Of `Bearer abc` the last word is the secret.
            secrets += [value] + (value.split(separator: " ").dropFirst().last.map { [String($0)] } ?? [])
        }
        let query = url.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        for parameter in query.split(separator: "&") {
            let parts = parameter.split(separator: "=", maxSplits: 1)
            // A place for a value is none itself.
            if parts.count == 2, SecretName.matches(parts[0]), !parts[1].contains("{") {
                secrets.append(String(parts[1]))
            }
        }
        return secrets
    }
}
