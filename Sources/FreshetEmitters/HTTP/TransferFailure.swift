import CCurl
import FreshetPipelines
import Glibc

/// Why libcurl ended a request without an answer, with the data for a message.
///
/// | error of libcurl | kind |
/// | --- | --- |
/// | no address, no connection, no handshake, or none of them in time | connection |
/// | a connection that broke or stalled, or a response that is not HTTP; a certificate | transient |
/// | a certificate that is not valid yet or has expired | certificateDate |
/// | a body that its own encoding contradicts | content |
/// | memory, a CA file or a client certificate that cannot be used, a URL that libcurl refuses | local |
struct TransferFailure {
    var code: CURLcode
    /// libcurl's message. It may contain hosts, addresses and the user information of a proxy, but no query.
    var detail: String
    var host: String
    /// The path of the socket through which the host is reached; nil without such a socket.
    var socket: String?
    /// The errno of the failed connection; 0 without an error.
    var systemError: Int32 = 0
    /// The number of received bytes of the body, before decoding.
    var received: UInt64
    /// The announced length of the body.
    var announced: UInt64?
    /// The number of requests for the rest of the body.
    var resumptions = 0
    /// Whether the connection was established, including the handshake, so that the request could be sent.
    var wasConnected: Bool
    /// Whether the name had been resolved.
    var wasResolved: Bool
    /// OpenSSL's result for the certificate (`X509_V_ERR_…`), if its verification failed.
    var verification = 0
    /// The certificate whose verification failed.
    var certificate: ServerCertificate?
    var limits: HTTPClient.Options
    var role = RequestRole.source

    /// X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED (openssl/x509_vfy.h): of any certificate of the
    /// chain.
    private static let dateFindings = [9, 10]

    /// X509_V_OK, X509_V_ERR_UNSPECIFIED and X509_V_ERR_HOSTNAME_MISMATCH. For an invalid chain OpenSSL has another
    /// result; libcurl itself compares the name, before it gets the result from OpenSSL.
    private static let nameFindings = [0, 1, 62]

    var failure: RunFailure {
        var failure = withoutRoute
        failure.isRouted = failure.kind == .connection && wasRouted
        failure.certificate = certificate
        return failure
    }

    /// Whether the name was resolved, and the kernel had a route to the address.
    private var wasRouted: Bool {
        guard code != CURLE_COULDNT_RESOLVE_HOST, code != CURLE_COULDNT_RESOLVE_PROXY, wasResolved else { return false }
        switch systemError {
        case ENETUNREACH, ENETDOWN, EADDRNOTAVAIL, EACCES, EPERM, EINVAL: return false
        default: return true
        }
    }

    private var withoutRoute: RunFailure {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST:
            RunFailure(.connection, "could not resolve \(host)\(reason)")
        case CURLE_COULDNT_RESOLVE_PROXY:
            RunFailure(.connection, "could not resolve the proxy for \(host)\(reason)")
        case CURLE_COULDNT_CONNECT where socket != nil:
            RunFailure(
                .connection,
                "could not connect to the socket \(socket ?? "")"
                    + (systemError == 0 ? "" : ": \(String(cString: strerror(systemError)))")
                    + "; its service must run, and the user of freshetd must be allowed to write to the socket")
        case CURLE_COULDNT_CONNECT:
            RunFailure(.connection, "could not connect to \(host)\(reason)")
        case CURLE_SSL_CONNECT_ERROR:
            RunFailure(.connection, "no TLS connection to \(host)\(reason)")
        case CURLE_OPERATION_TIMEDOUT where !wasResolved:
            RunFailure(
                .connection, "could not resolve \(host): no answer within \(Text.seconds(limits.connectTimeout))")
        case CURLE_OPERATION_TIMEDOUT where !wasConnected:
            RunFailure(.connection, "could not connect to \(host) within \(Text.seconds(limits.connectTimeout))")
        case CURLE_OPERATION_TIMEDOUT:
            RunFailure(.transient, "\(host) sent nothing for \(Text.seconds(limits.stallLimit))")
        case CURLE_PEER_FAILED_VERIFICATION where Self.dateFindings.contains(verification):
            RunFailure(
                .certificateDate,
                "the certificate of \(host) is not valid at this machine's date\(reason); check the clock here, "
                    + "then the certificate there")
        case CURLE_PEER_FAILED_VERIFICATION where Self.nameFindings.contains(verification):
            RunFailure(
                .transient,
                "the certificate of \(host) is for another name\(reason); check the host in \(role.url), then the "
                    + "certificate there")
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            RunFailure(
                .transient,
                "the certificate of \(host) is not trusted\(reason); check the clock and the authorities on this machine"
            )
        case CURLE_SSL_CERTPROBLEM:
            RunFailure(
                .local,
                "the client certificate for \(host) cannot be used\(reason); its credential and the credential of its "
                    + "key must be PEM, belong together and need no passphrase")
        case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE:
            RunFailure(.local, "the file of certificate authorities cannot be used\(reason)")
        case CURLE_PARTIAL_FILE:
            if let announced {
                RunFailure(
                    .transient,
                    "the body ended after \(Text.grouped(received)) of \(Text.grouped(announced)) bytes "
                        + "(\(host))\(resumed)")
            } else {
                RunFailure(.transient, "the body ended after \(Text.grouped(received)) bytes, before its end (\(host))")
            }
        case CURLE_BAD_FUNCTION_ARGUMENT:
            // libcurl's own parser of header lines, which gets each line first, rejected the line.
            RunFailure(
                .transient, "\(host) sent a header line without a valid name, or a continuation line first")
        case CURLE_GOT_NOTHING:
            RunFailure(.transient, "\(host) closed the connection without an answer")
        case CURLE_BAD_CONTENT_ENCODING:
            RunFailure(.content, "the body's compression is broken or unknown (\(host))\(reason)")
        case CURLE_OUT_OF_MEMORY:
            // libcurl has the same error for a header line that exceeds its limit of 100 KiB.
            RunFailure(
                .transient, "\(host) sent a header line that is too long, or this machine is out of memory")
        case CURLE_UNSUPPORTED_PROTOCOL where wasConnected:  // HTTP/0.9: the response is not HTTP
            RunFailure(.transient, "\(host) does not speak HTTP there\(reason)")
        case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL:
            RunFailure(.local, "the URL at \(host) cannot be used; check \(role.url)")
        case CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN, CURLE_UNKNOWN_OPTION:
            RunFailure(.local, "libcurl cannot make the request to \(host)\(reason)")
        default:
            RunFailure(.transient, "the request to \(host) failed\(reason)")
        }
    }

    private var resumed: String {
        switch resumptions {
        case 0: ""
        case 1: ", and it was continued once before"
        default: ", and it was continued \(resumptions) times before"
        }
    }

    private var reason: String {
        let words = detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
        return ": \(Text.escaped(Self.withoutUserInformation(words)))"
    }

    /// libcurl quotes a proxy's URL that it cannot use, including the password. The quoted text may be an invalid URL,
    /// which cannot be parsed, so the text from the scheme to the last `@` is removed.
    private static func withoutUserInformation(_ words: String) -> String {
        guard let at = words.lastIndex(of: "@") else { return words }
        var start = words.startIndex
        var index = start
        while index < at {
            if words[index...].hasPrefix("://") {
                start = words.index(index, offsetBy: 3)
                break
            }
            if words[index] == "'" { start = words.index(after: index) }
            index = words.index(after: index)
        }
        return words[..<start] + "…" + words[at...]
    }
}
