import FreshetPipelines

extension HTTPSource {
    /// The header fields in libcurl's format, with the secrets of the credentials that they name.
    func fields(with credentials: [String: String]) throws(RunFailure) -> [String] {
        var fields: [String] = []
        for header in headers {
            let value: String
            switch header.value {
            case .text(let text):
                value = text
            case .credential(let name, let form):
                guard let secret = credentials[name] else {
                    throw RunFailure(.local, "the service was started without the credential '\(name)'")
                }
                // The configuration does not allow this either; the check here covers sources from elsewhere too.
                guard mayCarryCredentials else {
                    throw RunFailure(
                        .local, "the credential '\(name)' is not sent unencrypted to \(self.host); use an https URL")
                }
                switch form {
                case .field, .ownField: value = secret
                case .bearer: value = "Bearer \(secret)"
                case .basic:
                    guard let encoded = BasicCredentials.encoded(secret) else {
                        throw RunFailure(.local, "the credential '\(name)' is not of the form user:password")
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
