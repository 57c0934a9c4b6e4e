import FreshetPipelines

/// The keys of a source that define the request to its URL.
struct RequestReader {
    let reader: DefinitionReader

    /// The keys that need a `url`, with the verb and the pronoun of the error message.
    static let requestKeys: [(key: String, verb: String, them: String)] = [
        ("headers", "need", "them"), ("credential", "needs", "it"), ("credential-file", "needs", "it"),
        ("method", "needs", "it"),
        ("body", "needs", "it"), ("content-type", "needs", "it"), ("unix-socket", "needs", "it"),
        ("client-certificate", "needs", "it"), ("client-key", "needs", "it"),
        ("certificate-authority", "needs", "it"), ("redirects", "needs", "it"), ("allow-unframed", "needs", "it"),
        ("proxy", "needs", "it"),
    ]
    /// The longest body of a request, in bytes.
    static let maximumBodyLength = 64 << 10

    /// The request for a URL with header fields that were read before.
    func request(
        for url: (url: String, host: String), _ headers: [HTTPHeader], in section: Section
    ) -> HTTPSource {
        var source = HTTPSource(
            url: url.url, headers: headers, host: url.host, method: method(in: section, headers),
            unixSocket: reader.value("unix-socket", in: section, .socketPath),
            clientCertificate: clientCertificate(in: section),
            certificateAuthority: certificateAuthority(in: section, url.url))
        source.redirects = reader.value("redirects", in: section, .choice()) ?? .any
        source.allowsUnframed = reader.value("allow-unframed", in: section, .boolean) ?? false
        source.proxy = reader.value("proxy", in: section, .proxy) ?? .environment
        if case .url = source.proxy, section["unix-socket"] != nil, let entry = section["proxy"] {
            reader.addError(
                entry.location, section.path("proxy"), "'proxy' and 'unix-socket' exclude each other",
                remedy: "keep one: a request through a socket uses no proxy", related: section["unix-socket"]?.location)
        }
        return source
    }

    private func clientCertificate(in section: Section) -> HTTPSource.ClientCertificate? {
        let certificate = reader.value("client-certificate", in: section, .credentialName)
        let key = reader.value("client-key", in: section, .credentialName)
        if section["client-certificate"] == nil, let entry = section["client-key"] {
            reader.addError(
                entry.location, section.path(entry.key), "'client-key' needs 'client-certificate'",
                remedy: "add the name of the credential with the certificate")
        }
        return certificate.map { HTTPSource.ClientCertificate(certificate: $0, key: key) }
    }

    private func certificateAuthority(in section: Section, _ url: String) -> String? {
        for key in ["client-certificate", "certificate-authority"] {
            guard let entry = section[key], !url.lowercased().hasPrefix("https://"), URLTemplate.whole(url) == nil
            else { continue }
            reader.addError(
                entry.location, section.path(key), "'\(key)' needs TLS, but the URL is not encrypted",
                remedy: "begin the URL with https://, or leave it out", related: section["url"]?.location)
        }
        return reader.value("certificate-authority", in: section, .absolutePath)
    }

    private func method(in section: Section, _ headers: [HTTPHeader]) -> HTTPSource.Method {
        let method: MethodName? = reader.value("method", in: section, .choice())
        let body = reader.value("body", in: section, .body)
        let contentType = reader.value("content-type", in: section, .contentType)
        if section["body"] == nil, let entry = section["content-type"] {
            reader.addError(
                entry.location, section.path(entry.key), "'content-type' needs a 'body'",
                remedy: "leave it out; to choose the type of the answer, use the header Accept")
        }
        if method != .post, let entry = section["body"] {
            // An invalid method was reported already.
            if method != nil || section["method"] == nil {
                reader.addError(
                    entry.location, section.path(entry.key), "'body' needs the method POST",
                    remedy: "write method: POST, or leave it out", related: section["method"]?.location)
            }
        }
        guard method == .post else { return .get }
        if headers.contains(where: { $0.name.lowercased() == "content-type" }), let entry = section["headers"] {
            reader.addError(
                entry.location, section.path(entry.key), "'headers' has the type of the body",
                remedy: "use the key 'content-type' instead", related: section["body"]?.location)
        }
        return .post(body: body ?? "", contentType: contentType ?? HTTPSource.defaultContentType)
    }
}

private enum MethodName: String, CaseIterable, Sendable {
    case get = "GET"
    case post = "POST"
}

extension ValueKind where Value == HTTPSource.Proxy {
    /// The URL is not quoted: its user information may be a secret.
    fileprivate static let proxy = ValueKind(name: "the URL of an HTTP proxy such as http://proxy.example.com:3128") {
        scalar throws(ValueError) in
        if scalar.text == "none" { return .none }
        let remedy = "write http://HOST:PORT, or none; a proxy with a password belongs into /etc/default/freshetd"
        do throws(ValueError) {
            _ = try URLText.host(of: scalar.text)
        } catch {
            throw ValueError(error.message, remedy: remedy)
        }
        let parts = scalar.text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.first?.lowercased() == "http:", parts.count < 4 || parts[3].isEmpty,
            !scalar.text.contains(where: { "?{}".contains($0) })
        else { throw ValueError("has to be the URL of an HTTP proxy, without a path", remedy: remedy) }
        return .url(scalar.text)
    }
}

extension ValueKind where Value == String {
    fileprivate static let body = ValueKind(name: "text, in quotation marks or after '|'") {
        scalar throws(ValueError) in
        let text = try ValueKind.text.read(scalar)
        guard text.utf8.count <= RequestReader.maximumBodyLength else {
            throw ValueError("is longer than \(RequestReader.maximumBodyLength) bytes")
        }
        return text
    }

    /// unix(7): an address has 108 bytes, with a NUL at the end of a path.
    fileprivate static let socketPath = ValueKind(name: "the absolute path of a socket") { scalar throws(ValueError) in
        let path = try ValueKind.absolutePath.read(scalar)
        guard path.utf8.count <= 107 else {
            throw ValueError("is longer than 107 bytes, the limit for the path of a socket")
        }
        return path
    }

    /// A media type (RFC 9110, 8.3), with parameters that are not checked.
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
