/// Names of header fields and of parameters whose values are secrets.
package enum SecretName {
    private static let parts = ["auth", "cookie", "key", "password", "secret", "token"]

    /// Whether one of `auth`, `cookie`, `key`, `password`, `secret`, `token` stands in it; case does not matter.
    package static func matches(_ name: some StringProtocol) -> Bool {
        let name = name.lowercased()
        return parts.contains { name.contains($0) }
    }
}

extension PipelineDefinition {
    /// The permission bits of its copies: what is configured, else 0644, or 0640 if the source is asked with a secret.
    package var cacheMode: UInt32 {
        if let mode = cache.mode { return mode }
        return httpSources.contains(where: \.isPrivate) ? 0o640 : 0o644
    }

    /// The credentials that its source needs, each with the keys that lead to its name.
    package var credentials: [(name: String, keys: [String])] {
        stage.credentials(at: ["source"])
    }

    private var httpSources: [HTTPSource] {
        sources.compactMap { if case .http(let source) = $0 { source } else { nil } }
    }

    /// What its configuration holds of secrets in plain text: values of header fields and of the URL's parameters, as
    /// far as their names say so. What an origin sends back of them must not be shown either.
    package var plainSecrets: [String] {
        httpSources.flatMap(\.plainSecrets)
    }
}

extension StageDefinition {
    fileprivate func credentials(at keys: [String]) -> [(name: String, keys: [String])] {
        var credentials: [(name: String, keys: [String])] = []
        switch source {
        case .http(let source):
            credentials += source.headers.compactMap { header in
                guard case .credential(let name, let scheme) = header.value else { return nil }
                return (name, keys + (scheme == nil ? ["headers", header.name, "credential"] : ["credential"]))
            }
        case .joined(let sources):
            for source in sources { credentials += source.stage.credentials(at: ["sources", source.name]) }
        case .command, .file, .copy: break
        }
        return credentials + (each?.stage.credentials(at: keys + ["each"]) ?? [])
    }
}

extension HTTPSource {
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
            if parts.count == 2, SecretName.matches(parts[0]) { secrets.append(String(parts[1])) }
        }
        return secrets
    }
}
