import FreshetPipelines

extension DefinitionReader {
    /// `source.credential`: a name, or keys that say as what the secret is sent. Nil if it is not there or faulty.
    mutating func ownCredential(in source: Section) -> HTTPHeader? {
        guard let entry = source["credential"] else { return nil }
        guard case .mapping = entry.value.content else {
            return value("credential", in: source, .credentialName).map { .bearer($0) }
        }
        guard let section = section(.credential, "credential", in: source) else { return nil }
        let name = value("name", in: section, .credentialName)
        if section["name"] == nil {
            missing(
                section.location, section.path("name"), "'credential' has no 'name'",
                remedy: "name a credential that the service is started with")
        }
        let scheme: CredentialScheme? = value("as", in: section, .choice())
        let header = value("header", in: section, .headerName)
        if let scheme, scheme != .header, let entry = section["header"] {
            error(
                entry.location, section.path("header"), "'header' belongs to 'as: header', and \(scheme.sentence)",
                remedy: "keep one of them", related: section["as"]?.location)
        }
        if scheme == .header, section["header"] == nil {
            missing(
                section.location, section.path("header"), "'credential' has no 'header'",
                remedy: "name the header whose value the secret is: header: X-Api-Key")
        }
        guard let name else { return nil }
        // A faulty value is no reason to take the secret for a bearer token; it is reported, and nothing runs.
        switch scheme ?? (section["header"] == nil ? .bearer : .header) {
        case .bearer: return .bearer(name)
        case .basic: return .basic(name)
        case .header: return header.map { HTTPHeader($0, credential: name, as: .ownField) }
        }
    }
}

private enum CredentialScheme: String, CaseIterable, Sendable {
    case bearer, basic, header

    /// The end of a sentence about it.
    var sentence: String { "a \(self) credential is the header Authorization" }
}

extension ValueKind where Value == String {
    fileprivate static let headerName = ValueKind(name: "the name of a header such as X-Api-Key") {
        scalar throws(ValueError) in
        try HTTPText.checkHeaderName(scalar.text)
        return scalar.text
    }
}
