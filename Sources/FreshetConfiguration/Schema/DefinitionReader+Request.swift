import FreshetPipelines

/// The keys of a source that say how its URL is asked.
extension DefinitionReader {
    /// What belongs to a `url` alone, with the words for a message about it.
    static let requestKeys: [(key: String, verb: String, them: String)] = [
        ("headers", "belong", "them"), ("credential", "belongs", "it"), ("method", "belongs", "it"),
        ("body", "belongs", "it"), ("content-type", "belongs", "it"), ("unix-socket", "belongs", "it"),
        ("client-certificate", "belongs", "it"), ("client-key", "belongs", "it"),
        ("certificate-authority", "belongs", "it"), ("redirects", "belongs", "it"), ("allow-unframed", "belongs", "it"),
    ]
    /// The longest body of a request, in bytes: what fits into a configuration and is still read by people.
    static let maximumBodyLength = 64 << 10

    /// The request for a URL whose header fields were read before.
    mutating func request(
        for url: (url: String, host: String), _ headers: [HTTPHeader], in section: Section
    ) -> HTTPSource {
        var source = HTTPSource(
            url: url.url, headers: headers, host: url.host, method: method(in: section, headers),
            unixSocket: value("unix-socket", in: section, .socketPath),
            clientCertificate: clientCertificate(in: section),
            certificateAuthority: certificateAuthority(in: section, url.url))
        source.redirects = value("redirects", in: section, .choice()) ?? .any
        source.allowsUnframed = value("allow-unframed", in: section, .boolean) ?? false
        return source
    }

    private mutating func clientCertificate(in section: Section) -> HTTPSource.ClientCertificate? {
        let certificate = value("client-certificate", in: section, .credentialName)
        let key = value("client-key", in: section, .credentialName)
        if section["client-certificate"] == nil, let entry = section["client-key"] {
            error(
                entry.location, section.path(entry.key), "'client-key' belongs to a 'client-certificate'",
                remedy: "name the credential that holds the certificate, too")
        }
        return certificate.map { HTTPSource.ClientCertificate(certificate: $0, key: key) }
    }

    private mutating func certificateAuthority(in section: Section, _ url: String) -> String? {
        for key in ["client-certificate", "certificate-authority"]
        where !url.lowercased().hasPrefix("https://") && URLTemplate.whole(url) == nil {
            guard let entry = section[key] else { continue }
            error(
                entry.location, section.path(key), "'\(key)' is for TLS, and the URL is not encrypted",
                remedy: "begin the URL with https://, or leave it out", related: section["url"]?.location)
        }
        return value("certificate-authority", in: section, .absolutePath)
    }

    private mutating func method(in section: Section, _ headers: [HTTPHeader]) -> HTTPSource.Method {
        let method: MethodName? = value("method", in: section, .choice())
        let body = value("body", in: section, .body)
        let contentType = value("content-type", in: section, .contentType)
        if section["body"] == nil, let entry = section["content-type"] {
            error(
                entry.location, section.path(entry.key), "'content-type' says what a 'body' is, and there is none",
                remedy: "leave it out; what the origin is to answer with says the header Accept")
        }
        if method != .post, let entry = section["body"] {
            // A method with a fault is reported already.
            if method != nil || section["method"] == nil {
                error(
                    entry.location, section.path(entry.key), "'body' is sent with the method POST only",
                    remedy: "write method: POST, or leave it out", related: section["method"]?.location)
            }
        }
        guard method == .post else { return .get }
        if headers.contains(where: { $0.name.lowercased() == "content-type" }), let entry = section["headers"] {
            error(
                entry.location, section.path(entry.key), "the type of the body stands in 'headers'",
                remedy: "write it as 'content-type'", related: section["body"]?.location)
        }
        return .post(body: body ?? "", contentType: contentType ?? HTTPSource.defaultContentType)
    }
}

private enum MethodName: String, CaseIterable, Sendable {
    case get = "GET"
    case post = "POST"
}

extension ValueKind where Value == String {
    fileprivate static let body = ValueKind(name: "text, in quotation marks or after '|'") {
        scalar throws(ValueError) in
        let text = try ValueKind.text.read(scalar)
        guard text.utf8.count <= DefinitionReader.maximumBodyLength else {
            throw ValueError("is longer than \(DefinitionReader.maximumBodyLength) bytes")
        }
        return text
    }

    /// unix(7): an address has 108 bytes, with a NUL at the end of a path.
    fileprivate static let socketPath = ValueKind(name: "the absolute path of a socket") { scalar throws(ValueError) in
        let path = try ValueKind.absolutePath.read(scalar)
        guard path.utf8.count <= 107 else {
            throw ValueError("is longer than the path of a socket may be, 107 bytes")
        }
        return path
    }

    /// RFC 9110, 8.3: a media type, and parameters that are left as they are.
    fileprivate static let contentType = ValueKind(name: "a media type such as application/json") {
        scalar throws(ValueError) in
        try HTTPText.checkHeaderValue(scalar.text)
        let type = scalar.text.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }
        let parts = type.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ HTTPText.isToken($0) }) else {
            throw ValueError("has to be a media type such as application/json, not \(scalar.text.quoted)")
        }
        return scalar.text
    }
}
