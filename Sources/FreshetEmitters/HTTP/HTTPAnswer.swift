import FreshetModel
import FreshetPipelines

/// An origin's answer without its body: the fields that determine how the answer is used.
struct HTTPAnswer: Hashable, Sendable {
    var status: Int
    /// The host that answered, perhaps with the path, for messages; not needed for a usual answer.
    var host: String
    var contentType: String?
    var entityTag: String?
    var lastModified: String?
    /// The `Date` field: when the origin made the answer.
    var date: String?
    /// When the head of the answer arrived, in wall-clock seconds since 1970. Nil if that is unknown; then
    /// `Last-Modified` is not used as a validator.
    var received: Int64?
    var retryAfter: String?
    /// Whether the request was conditional.
    var wasConditional: Bool
    /// Whether the request was for the rest of a body.
    var wasForRest = false
    /// The identity of the client that the request carried.
    var identity = Identity.own(credentials: [])

    enum Identity: Hashable {
        /// The header fields of the configuration, if there are any, with the credentials of these names.
        case own(credentials: [String])
        /// An access token that this host has issued.
        case token(from: String)
        /// No identity, because a redirect has led to another origin.
        case withheld
    }

    /// The meaning of the answer for the fetch.
    enum Meaning: Hashable {
        case content
        case notModified
        case failure(RunFailure)
    }

    /// Whether an answer is the content, or says that it has not changed: no message is made about it.
    static func isUsual(_ status: Int, wasConditional: Bool) -> Bool {
        switch status {
        case 202, 206: false
        case 200..<300: true
        case 304: wasConditional
        default: false
        }
    }

    /// - Parameter now: wall-clock time in seconds since 1970, against which a date in `Retry-After` counts.
    func meaning(now: Int64) -> Meaning {
        if Self.isUsual(status, wasConditional: wasConditional) { return status == 304 ? .notModified : .content }
        let answered = "the origin answered \(status)\(Self.phrase(status).map { " \($0)" } ?? "") (\(host))"
        let pause = retryAfter.flatMap { RetryAfter.parse($0, now: now) }
        switch status {
        case 202:
            return .failure(
                RunFailure(.transient, "\(answered): it has no answer yet", retryAfter: pause, status: status))
        case 206:
            return .failure(RunFailure(.content, "\(answered), but the request was not for a part", status: status))
        case 304:
            return .failure(RunFailure(.content, "\(answered) to a request that was not conditional", status: status))
        case 416 where wasForRest:
            // Transient, because a refusal would stop requests for an hour, and the whole body is still available.
            return .failure(
                RunFailure(
                    .transient, "\(answered) to a request for the rest of a body", retryAfter: pause, status: status))
        case 401, 403:
            let remedy =
                switch identity {
                case .own(credentials: []): "check the source's headers, or give it a credential"
                case .own(let names):
                    "with \(names.map(CredentialName.text).joined(separator: " and ")), as it is now; "
                        + (names.allSatisfy(CredentialName.isPath)
                            ? "write a valid secret into the file"
                            : "after a rotation, systemctl restart freshetd: systemd passes a new file only then")
                case .token(let server):
                    "with an access token from \(server); check its scope, and whether the origin accepts tokens of "
                        + "this server"
                case .withheld: "the source redirects there, and its headers are sent to its own origin only"
                }
            return .failure(RunFailure(.refused, "\(answered): \(remedy)", retryAfter: pause, status: status))
        case 408, 425, 429:
            return .failure(RunFailure(.transient, answered, retryAfter: pause, status: status))
        case 300..<500:
            return .failure(RunFailure(.refused, answered, retryAfter: pause, status: status))
        default:
            return .failure(RunFailure(.transient, answered, retryAfter: pause, status: status))
        }
    }

    /// The validators that can show a later change.
    var validators: Validators { stated.usable(received: received ?? .min) }

    /// The validators as the origin sent them.
    var stated: ResponseValidators { ResponseValidators(entityTag: entityTag, lastModified: lastModified, date: date) }

    /// `Content-Type` without parameters, in lower case (RFC 9110, 8.3.1).
    var mediaType: String? {
        guard let contentType else { return nil }
        let type = contentType.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased()
        return type.isEmpty ? nil : type
    }

    /// The redirects that are followed (RFC 9110, 15.4).
    static func isRedirect(_ status: Int) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }

    /// The reason phrases of RFC 9110, 15 and RFC 6585 that an administrator is likely to see; HTTP/2 sends none.
    private static func phrase(_ status: Int) -> String? {
        switch status {
        case 202: "Accepted"
        case 206: "Partial Content"
        case 300: "Multiple Choices"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 416: "Range Not Satisfiable"
        case 421: "Misdirected Request"
        case 425: "Too Early"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 451: "Unavailable For Legal Reasons"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        default: nil
        }
    }
}

/// The `Retry-After` field (RFC 9110, 10.2.3): seconds, or a date.
enum RetryAfter {
    /// The longest time that counts, so that an origin cannot stop a pipeline for longer than a week.
    static let longest: Duration = .seconds(7 * 24 * 60 * 60)

    /// How long to wait from `now` (wall-clock seconds since 1970); nil if the field is neither of the two forms.
    static func parse(_ field: String, now: Int64) -> Duration? {
        let words = field.utf8.split { $0 == 0x20 || $0 == 0x09 }
        guard let first = words.first else { return nil }
        if words.count == 1, first.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            // More digits than fit are more than a week.
            return Int64(String(decoding: first, as: UTF8.self)).map { min(.seconds($0), longest) } ?? longest
        }
        guard let date = HTTPDate.seconds(field) else { return nil }
        return min(max(.seconds(date - now), .zero), longest)
    }
}

extension HTTPAnswer.Identity {
    /// What a request of this source carries to its own origin.
    init(of source: HTTPSource) {
        let servers = source.headers.compactMap { header -> String? in
            guard case .credential(_, .oauth2(let client)) = header.value else { return nil }
            return client.host
        }
        self =
            servers.first.map { .token(from: $0) } ?? .own(credentials: source.headers.compactMap(\.credential))
    }
}
