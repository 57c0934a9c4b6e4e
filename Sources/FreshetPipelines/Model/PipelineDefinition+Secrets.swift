/// Finds the names of header fields and parameters whose values are secrets.
package enum SecretName {
    private static let parts = ["auth", "cookie", "key", "password", "secret", "token"]

    /// Whether the name contains `auth`, `cookie`, `key`, `password`, `secret` or `token`, in any case.
    package static func matches(_ name: some StringProtocol) -> Bool {
        let name = name.lowercased()
        return parts.contains { name.contains($0) }
    }
}

/// Distinguishes the names of service credentials from the paths of files: a name contains no slash.
package enum CredentialName {
    package static func isPath(_ name: String) -> Bool { name.hasPrefix("/") }

    /// Such as `the credential 'api-token'` or `the credential file /run/secrets/token`.
    package static func text(_ name: String) -> String {
        isPath(name) ? "the credential file \(name)" : "the credential '\(name)'"
    }
}

/// A service credential, or a file with a secret, that a source needs.
package struct NeededCredential: Hashable, Sendable {
    /// The expected content of the credential's file.
    package enum Content: Hashable, Sendable {
        /// One line.
        case line
        /// One line, `user:password` (RFC 7617, 2).
        case userAndPassword
        /// A file for a library, such as a certificate.
        case file
    }

    /// The name of a service credential, or the absolute path of a file.
    package var name: String
    /// Whether ``name`` is the path of a file, which is read again for each request.
    package var isPath: Bool { CredentialName.isPath(name) }
    /// The path of keys to its name in the pipeline's file.
    package var keys: [String]
    package var content: Content
}

extension PipelineDefinition {
    /// The permission bits of its copies: as configured, otherwise 0644, or 0640 if a request of the source carries a
    /// secret.
    package var cacheMode: UInt32 {
        if let mode = cache.mode { return mode }
        if let source = onlyHTTPSource { return source.isPrivate ? 0o640 : 0o644 }
        return httpSources.contains(where: \.isPrivate) ? 0o640 : 0o644
    }

    /// The credentials that its sources need.
    package var credentials: [NeededCredential] { stage.credentials(at: ["source"]) }

    /// The only request of the pipeline; nil: it has several, or none.
    private var onlyHTTPSource: HTTPSource? {
        let stage = stage
        guard case .http(let source) = stage.source, source.mirrors == nil, !stage.hasStages else { return nil }
        return source
    }

    private var httpSources: [HTTPSource] {
        if let source = onlyHTTPSource { return [source] }
        return sources.flatMap { if case .http(let source) = $0 { source.alternatives } else { [HTTPSource]() } }
    }

    /// The secrets that the configuration contains in plain text: values of header fields and URL parameters with names
    /// that say so, and defaults of such parameters. They must be redacted where an origin sends them back.
    package var plainSecrets: [String] {
        let proofSources = check.proofSources
        if parameters.isEmpty, proofSources.isEmpty, let source = onlyHTTPSource { return source.plainSecrets }
        return parameters.filter(\.isSecret).map(\.defaultValue)
            + (httpSources + proofSources).flatMap(\.plainSecrets)
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
            let own: [String] =
                switch form {
                case .field: ["headers", header.name, "credential"]
                case .oauth2: ["credential", "oauth2"]
                case .ownField, .bearer, .basic, .client: ["credential"]
                }
            return NeededCredential(
                name: name, keys: keys + own, content: form == .basic ? .userAndPassword : .line)
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

    /// Whether the request has a secret, from a credential or in plain text.
    package var hasSecrets: Bool { isPrivate || !plainSecrets.isEmpty }

    fileprivate var plainSecrets: [String] {
        var secrets: [String] = []
        for header in headers where header.isSecret {
            guard case .text(let value) = header.value else { continue }
            // In `Bearer abc` the last word is the secret.
            secrets += [value] + (value.split(separator: " ").dropFirst().last.map { [String($0)] } ?? [])
        }
        guard url.utf8.contains(UInt8(ascii: "?")) else { return secrets }
        let query = url.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        for parameter in query.split(separator: "&") {
            let parts = parameter.split(separator: "=", maxSplits: 1)
            // A placeholder is not a secret itself.
            if parts.count == 2, SecretName.matches(parts[0]), !parts[1].contains("{") {
                secrets.append(String(parts[1]))
            }
        }
        return secrets
    }
}
