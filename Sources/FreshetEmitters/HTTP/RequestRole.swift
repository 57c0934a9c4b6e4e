/// The part of the configuration that a request belongs to. It decides which key the message of a failure names.
enum RequestRole: Hashable {
    /// The URL of a source.
    case source
    /// A file beside the content: a list of checksums, a signature.
    case beside
    /// The token endpoint of a credential (`oauth2`).
    case tokenEndpoint

    /// The URL in a message, after "check" or "in".
    var url: String {
        switch self {
        case .source: "the source's URL"
        case .beside: "the file's URL"
        case .tokenEndpoint: "token-url"
        }
    }

    /// The remedy for a body that is longer than allowed. Only the limit of a source can be changed.
    var remedyForSize: String {
        switch self {
        case .source: "raise check.max-bytes if that is right"
        case .beside: "check whether its URL is right"
        case .tokenEndpoint: "check token-url"
        }
    }

    /// The reason and the remedy for a redirect that is not followed.
    func noteOnRedirect(_ redirects: String) -> String {
        switch self {
        case .source, .beside: "not followed (source.redirects: \(redirects))"
        case .tokenEndpoint: "not followed, because the secret is sent to token-url only; check token-url"
        }
    }
}
