import FreshetPipelines

extension HTTPHeader.CredentialForm {
    /// The key of the secret that is sent: the credential's name, or that of the access token.
    func key(of name: String) -> String {
        if case .oauth2(let client) = self { client.key(withSecret: name) } else { name }
    }
}

extension HTTPSource {
    /// The header fields in libcurl's format, with the secrets of the credentials that they name.
    ///
    /// - Parameter credentials: the secrets by their names, and access tokens by their keys.
    func fields(with credentials: [String: String]) throws(RunFailure) -> [String] {
        var fields: [String] = []
        for header in headers {
            let value: String
            switch header.value {
            case .text(let text):
                value = text
            case .credential(let name, let form):
                guard let secret = credentials[form.key(of: name)] else {
                    throw RunFailure(.local, "the service was started without \(CredentialName.text(name))")
                }
                // The configuration does not allow this either; the check here covers sources from elsewhere too.
                guard mayCarryCredentials else {
                    throw RunFailure(
                        .local, "\(CredentialName.text(name)) is not sent unencrypted to \(self.host); use an https URL"
                    )
                }
                switch form {
                case .field, .ownField: value = secret
                case .bearer, .oauth2: value = "Bearer \(secret)"
                case .client(let identifier): value = "Basic \(BasicCredentials.encoded(client: identifier, secret))"
                case .basic:
                    guard let encoded = BasicCredentials.encoded(secret) else {
                        throw RunFailure(.local, "\(CredentialName.text(name)) is not of the form user:password")
                    }
                    value = "Basic \(encoded)"
                }
            }
            guard Self.isFit(header.name, value) else {
                throw RunFailure(
                    .local, "a header field of the source at \(host) has an invalid character")
            }
            fields.append(value.isEmpty ? "\(header.name);" : "\(header.name): \(value)")
        }
        return fields
    }

    /// Whether the name is valid and the value has no control character, which could end the field (RFC 9110, 5.1 and
    /// 5.5).
    private static func isFit(_ name: String, _ value: String) -> Bool {
        !name.isEmpty && !name.utf8.contains { $0 <= 0x20 || $0 == 0x7F || $0 == UInt8(ascii: ":") }
            && !value.utf8.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }
    }
}
