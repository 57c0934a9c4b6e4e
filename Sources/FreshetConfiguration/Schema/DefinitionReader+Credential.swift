import FreshetPipelines

extension DefinitionReader {
    /// `source.credential`: a name, or keys that choose how the secret is sent. Nil if the key is absent or invalid.
    mutating func credentialHeader(in source: Section) -> HTTPHeader? {
        guard let entry = source["credential"] else { return nil }
        guard case .mapping = entry.value.content else {
            return value("credential", in: source, .credentialName).map { .bearer($0) }
        }
        guard let section = section(.credential, "credential", in: source) else { return nil }
        let name = value("name", in: section, .credentialName)
        if section["name"] == nil {
            missing(
                section.location, section.path("name"), "'credential' has no 'name'",
                remedy: "add the name of a credential of the service (LoadCredential=)")
        }
        let scheme: CredentialScheme? = value("as", in: section, .choice())
        let header = value("header", in: section, .headerName)
        if let scheme, scheme != .header, let entry = section["header"] {
            addError(
                entry.location, section.path("header"), "'header' needs 'as: header': \(scheme.sentence)",
                remedy: "keep one of them", related: section["as"]?.location)
        }
        if scheme == .header, section["header"] == nil {
            missing(
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
}

private enum CredentialScheme: String, CaseIterable, Sendable {
    case bearer, basic, header

    /// The end of an error message.
    var sentence: String { "a \(self) credential is sent in the header Authorization" }
}

extension ValueKind where Value == String {
    fileprivate static let headerName = ValueKind(name: "the name of a header such as X-Api-Key") {
        scalar throws(ValueError) in
        try HTTPText.checkHeaderName(scalar.text)
        return scalar.text
    }
}
