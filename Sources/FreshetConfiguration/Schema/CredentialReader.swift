import FreshetPipelines

/// `credential` and `credential-file` of a source: the secret of its requests, and how it is sent.
struct CredentialReader {
    let reader: DefinitionReader

    /// The longest identifier of a client, and the longest scope, in bytes.
    static let maximumText = 1_024

    /// The header field with the secret. Nil if both keys are absent, or a value is invalid.
    func header(in source: Section) -> HTTPHeader? {
        if let second = source["credential-file"] {
            if let first = source["credential"] {
                reader.addError(
                    second.location, source.path("credential-file"),
                    "'credential' and 'credential-file' exclude each other", remedy: "keep one",
                    related: first.location)
            }
            return reader.value("credential-file", in: source, .absolutePath).map { .bearer($0) }
        }
        guard let entry = source["credential"] else { return nil }
        guard case .mapping = entry.value.content else {
            return reader.value("credential", in: source, .credentialName).map { .bearer($0) }
        }
        guard let section = reader.section(.credential, "credential", in: source) else { return nil }
        if section["oauth2"] != nil { return token(in: section) }
        let name = self.secret(["name", "file"], in: section)
        let scheme: CredentialScheme? = reader.value("as", in: section, .choice())
        let header = reader.value("header", in: section, .headerName)
        if let scheme, scheme != .header, let entry = section["header"] {
            reader.addError(
                entry.location, section.path("header"), "'header' needs 'as: header': \(scheme.sentence)",
                remedy: "keep one of them", related: section["as"]?.location)
        }
        if scheme == .header, section["header"] == nil {
            reader.missing(
                section.location, section.path("header"), "'credential' has no 'header'",
                remedy: "add the name of the header for the secret: header: X-Api-Key")
        }
        guard let name else { return nil }
        // If the value of `as` is invalid, the pipeline does not run, so it does not matter which scheme is chosen
        // here.
        switch scheme ?? (section["header"] == nil ? .bearer : .header) {
        case .bearer: return .bearer(name)
        case .basic: return .basic(name)
        case .header: return header.map { HTTPHeader($0, credential: name, as: .ownField) }
        }
    }

    /// The name of a credential or the path of a file, of which exactly one is given.
    ///
    /// - Parameter keys: the key of the name, and that of the path.
    private func secret(_ keys: [String], in section: Section) -> String? {
        let (nameKey, fileKey) = (keys[0], keys[1])
        let name = reader.value(nameKey, in: section, .credentialName)
        let path = reader.value(fileKey, in: section, .absolutePath)
        if let first = section[nameKey], let second = section[fileKey] {
            reader.addError(
                second.location, section.path(fileKey), "'\(nameKey)' and '\(fileKey)' exclude each other",
                remedy: "keep one", related: first.location)
        }
        if section[nameKey] == nil, section[fileKey] == nil {
            reader.missing(
                section.location, section.path(nameKey), "'\(section.name.rawValue)' has no '\(nameKey)'",
                remedy: "add the name of a credential of the service (LoadCredential=), or the path of a file as "
                    + "'\(fileKey)'")
        }
        return name ?? path
    }

    // MARK: OAuth 2.0

    private func token(in credential: Section) -> HTTPHeader? {
        for key in ["name", "file", "as", "header"] {
            guard let entry = credential[key] else { continue }
            reader.addError(
                entry.location, credential.path(key), "'oauth2' and '\(key)' exclude each other",
                remedy: "leave '\(key)' out: a token is sent as a bearer token",
                related: credential["oauth2"]?.location)
        }
        guard let section = reader.section(.oauth2, "oauth2", in: credential) else { return nil }
        let secret = self.secret(["secret", "secret-file"], in: section)
        for (key, remedy) in [
            ("token-url", "add the URL of the token endpoint: token-url: https://…"),
            ("client-id", "add the identifier of the client, which the server has given it"),
        ] where section[key] == nil {
            reader.missing(section.location, section.path(key), "'oauth2' has no '\(key)'", remedy: remedy)
        }
        let url = reader.value("token-url", in: section, .url)
        let identifier = reader.value("client-id", in: section, .clientText)
        let scope = reader.value("scope", in: section, .clientText)
        guard let url, let entry = section["token-url"] else { return nil }
        PlaceholderChecker(reader: reader).checkPlaceholders(of: url.url, entry, in: section, among: [])
        guard url.url.lowercased().hasPrefix("https://") || HTTPSource(url: url.url, host: url.host).isLocal else {
            reader.addError(
                entry.value.location, section.path("token-url"),
                "the secret of the client would be sent to '\(url.host)' unencrypted",
                remedy: "begin the URL with https://; http:// is allowed only for this host (localhost, 127.0.0.1)")
            return nil
        }
        guard let secret, let identifier else { return nil }
        let client = OAuth2Client(tokenURL: url.url, host: url.host, identifier: identifier, scope: scope)
        return HTTPHeader("Authorization", credential: secret, as: .oauth2(client))
    }
}

private enum CredentialScheme: String, CaseIterable, Sendable {
    case bearer, basic, header

    /// The end of an error message.
    var sentence: String { "a \(self) credential is sent in the header Authorization" }
}

extension ValueKind where Value == String {
    /// RFC 6749, appendix A: the identifier of a client and a scope are printable ASCII.
    fileprivate static let clientText = ValueKind(name: "one line of printable ASCII") { scalar throws(ValueError) in
        guard (1...CredentialReader.maximumText).contains(scalar.text.utf8.count),
            scalar.text.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else {
            throw ValueError("has to be 1 to \(CredentialReader.maximumText) characters of printable ASCII")
        }
        return scalar.text
    }
}
