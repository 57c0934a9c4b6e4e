import FreshetPipelines

extension RequestReader {
    /// How many headers a request may have.
    static let maximumHeaders = 64

    /// The header fields, including that of `credential`.
    func headers(in section: Section) -> [HTTPHeader] {
        var headers = plainHeaders(in: section)
        if let own = CredentialReader(reader: reader).header(in: section),
            let entry = section["credential"] ?? section["credential-file"]
        {
            if headers.contains(where: { $0.name.lowercased() == own.name.lowercased() }) {
                reader.addError(
                    entry.location, section.path(entry.key),
                    "'\(entry.key)' sets the header '\(own.name)', which is also in 'headers'",
                    remedy: "keep one of them", related: section["headers"]?.location)
            }
            headers.append(own)
        }
        return headers
    }

    private func plainHeaders(in section: Section) -> [HTTPHeader] {
        guard let entry = section["headers"] else { return [] }
        guard case .mapping(let entries) = entry.value.content else {
            if case .invalid = entry.value.content { return [] }
            reader.addError(
                entry.value.location, section.path("headers"),
                "'headers' has to contain names with values, not \(entry.value.kind)",
                remedy: "write headers: {Accept: application/json}")
            return []
        }
        guard entries.count <= Self.maximumHeaders else {
            reader.addError(
                entry.location, section.path("headers"), "there are more than \(Self.maximumHeaders) headers")
            return []
        }
        var places: [String: Location] = [:]
        var headers: [HTTPHeader] = []
        for entry in entries {
            if case .removed = entry.value.content { continue }
            let keyPath = "\(section.path("headers")).\(entry.key)"
            do throws(ValueError) {
                try HTTPText.checkHeaderName(entry.key)
            } catch {
                reader.addError(entry.location, keyPath, "\(entry.key.quoted) \(error.message)", remedy: error.remedy)
                continue
            }
            if let first = places.updateValue(entry.location, forKey: entry.key.lowercased()) {
                reader.addError(
                    entry.location, keyPath, "the header '\(entry.key)' appears twice: header names ignore case",
                    remedy: "keep one of them", related: first)
            }
            if case .mapping(let entries) = entry.value.content {
                if let name = credential(of: entry, among: entries, keyPath) {
                    headers.append(HTTPHeader(entry.key, credential: name))
                }
            } else if let value = reader.value(of: entry.value, key: entry.key, keyPath: keyPath, .headerValue) {
                headers.append(HTTPHeader(entry.key, value))
            }
        }
        return headers
    }

    /// The name in a header's value `{credential: NAME}`.
    private func credential(of header: Node.Entry, among entries: [Node.Entry], _ keyPath: String) -> String? {
        guard entries.count == 1, let entry = entries.first, entry.key == "credential" else {
            reader.addError(
                header.value.location, keyPath, "\(header.key.quoted) has to be one line of text or {credential: NAME}",
                remedy: "add the name of a credential of the service (LoadCredential=)")
            return nil
        }
        return reader.value(of: entry.value, key: "credential", keyPath: "\(keyPath).credential", .credentialName)
    }
}

extension ValueKind where Value == String {
    /// The name of a credential: valid for systemd and as a file name, and without characters that need quoting. A
    /// message does not quote it: a user may have written the secret itself here.
    static let credentialName = ValueKind(name: "the name of a credential such as api-token") {
        scalar throws(ValueError) in
        let name = scalar.text
        guard (1...64).contains(name.utf8.count), !name.hasPrefix("."),
            name.utf8.allSatisfy({ HTTPText.isLetterOrDigit($0) || "-_.".utf8.contains($0) })
        else {
            throw ValueError(
                "is not the name of a credential",
                remedy:
                    "use at most 64 letters, digits, '-', '_' and '.'; the secret itself belongs in a file that the "
                    + "unit loads with LoadCredential=")
        }
        return name
    }

    fileprivate static let headerValue = ValueKind(name: "one line of text") { scalar throws(ValueError) in
        try HTTPText.checkHeaderValue(scalar.text)
        return scalar.text
    }

    static let headerName = ValueKind(name: "the name of a header such as X-Api-Key") {
        scalar throws(ValueError) in
        try HTTPText.checkHeaderName(scalar.text)
        return scalar.text
    }
}
