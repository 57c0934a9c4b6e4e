import FreshetPipelines

/// Warns about secrets that a request shows to others.
struct ExposedSecretChecker {
    let reader: DefinitionReader

    /// The names of query parameters whose values are secrets, without `-` and `_`. ``SecretName`` also matches names
    /// such as `keyword`, where values are only redacted.
    private static let parameters: Set<String> = [
        "accesstoken", "apikey", "apitoken", "auth", "authtoken", "clientsecret", "key", "password", "secret", "token",
    ]

    func warn(about source: HTTPSource, in section: Section) {
        warnUnencryptedHeaders(of: source, in: section)
        warnQuery(of: source, in: section)
    }

    /// Headers with a secret in plain text. A credential is an error there.
    private func warnUnencryptedHeaders(of source: HTTPSource, in section: Section) {
        guard !source.mayCarryCredentials, case .mapping(let entries)? = section["headers"]?.value.content else {
            return
        }
        for entry in entries where SecretName.matches(entry.key) {
            guard case .scalar = entry.value.content else { continue }
            reader.warning(
                entry.location, "\(section.path("headers")).\(entry.key)",
                "the header '\(entry.key)' is sent to '\(source.host)' unencrypted: everybody on the way can read it",
                remedy: "begin the URL with https://")
        }
    }

    private func warnQuery(of source: HTTPSource, in section: Section) {
        guard source.url.utf8.contains(UInt8(ascii: "?")), let entry = section["url"] else { return }
        let query = source.url.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        for parameter in query.split(separator: "&") {
            let parts = parameter.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, !parts[1].contains("{"),
                Self.parameters.contains(parts[0].lowercased().filter { $0 != "-" && $0 != "_" })
            else { continue }
            reader.warning(
                entry.value.location, section.path("url"),
                "the query of the URL has a secret, '\(parts[0])', which the logs of proxies and of the origin show",
                remedy: "if the origin accepts a header, send a credential: headers: {X-Api-Key: {credential: api-key}}"
            )
            return
        }
    }
}
