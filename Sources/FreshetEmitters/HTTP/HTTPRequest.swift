import CCurl
import FreshetModel
import FreshetPipelines

/// The options of libcurl and the header fields of a request.
struct HTTPRequest {
    /// The purpose of the request.
    enum Purpose: Hashable {
        /// To fetch data: redirects are followed.
        case data
        /// To get the status of the URL itself, on a new connection: redirects are not followed, and no data is kept.
        case status
    }

    var purpose = Purpose.data
    var role = RequestRole.source
    let source: HTTPSource
    /// The configured URL.
    let location: Location
    let options: HTTPClient.Options
    /// The configuration's header fields, secrets included.
    var fields: [String] = []
    var proof: ClientIdentity?
    /// Whether a compression for the transfer is requested.
    var requestsCoding = true
    /// Nil if the request is unconditional.
    var validators: Validators?

    /// Sets the options that are the same for all hops.
    func configure(_ easy: EasyHandle) {
        easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
        easy.set(CURLOPT_FOLLOWLOCATION, 0)
        easy.set(CURLOPT_USERAGENT, options.userAgent)
        easy.set(CURLOPT_ACCEPT_ENCODING, requestsCoding ? ContentDecoder.accepted : "identity")
        easy.set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        switch source.proxy {
        case .environment: if let proxy = options.proxy { easy.set(CURLOPT_PROXY, proxy) }
        // An empty text also switches the proxies of the environment off (CURLOPT_PROXY(3)).
        case .none: easy.set(CURLOPT_PROXY, "")
        case .url(let url): easy.set(CURLOPT_PROXY, url)
        }
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeout.wholeMilliseconds)
        easy.set(CURLOPT_LOW_SPEED_LIMIT, 1)
        easy.set(CURLOPT_LOW_SPEED_TIME, max(1, options.stallLimit.wholeMilliseconds / 1_000))
        // libcurl must not use signals, which belong to the program; libcurl's timeouts do not need them.
        easy.set(CURLOPT_NOSIGNAL, 1)
        // A lookup runs on a thread of libcurl that cannot be interrupted. With this option, removing the request does
        // not wait for the thread, which would take seconds if the name server does not answer.
        easy.set(CURLOPT_QUICK_EXIT, 1)
        if purpose == .status {
            // An existing connection does not show whether new connections are possible.
            easy.set(CURLOPT_FRESH_CONNECT, 1)
            easy.set(CURLOPT_FORBID_REUSE, 1)
        }
        easy.set(CURLOPT_UNIX_SOCKET_PATH, source.unixSocket)
    }

    /// Sets the options of one hop.
    ///
    /// - Parameter rest: the fields of a request for the rest of a body; nil: the whole body is requested.
    func prepare(_ easy: EasyHandle, for hop: TransferStateMachine.Hop, rest: [String]?) {
        easy.set(CURLOPT_URL, hop.location.url)
        let own = hop.carriesCredentials
        // The user information of the configured URL; a redirect within the origin keeps it.
        easy.set(CURLOPT_USERNAME, own ? location.user : nil)
        easy.set(CURLOPT_PASSWORD, own ? location.password : nil)
        easy.setProof(own ? proof : nil)
        if source.certificateAuthority != nil || options.certificateAuthorities != nil {
            easy.setAuthorities((own ? source.certificateAuthority : nil) ?? options.certificateAuthorities)
        }
        // Secrets over plain http are only sent to this machine, and without a proxy, which could read them.
        let isPrivate = own && (source.isPrivate || location.user != nil)
        let staysHere = isPrivate && source.isLocal && hop.location.origin.scheme == "http"
        // Without a value, libcurl uses the exceptions of the environment, which are not for a configured proxy.
        let exceptions: String? = if case .url = source.proxy { "" } else { nil }
        easy.set(CURLOPT_NOPROXY, staysHere || source.unixSocket != nil ? "*" : exceptions)
        var lines = own ? fields : []
        if hop.sendsBody, case .post(let text, let contentType) = source.method {
            easy.setBody(text)
            // A field without a value removes libcurl's default field.
            lines.append(text.isEmpty ? "Content-Type:" : "Content-Type: \(contentType)")
        } else {
            easy.setBody(nil)
        }
        if let rest {
            lines += rest
        } else if !hop.sendsBody, hop.isConditional {
            // A POST must not be conditional: its answer would be 412 (RFC 9110, 13.1).
            if let tag = validators?.entityTag { lines.append("If-None-Match: \(tag)") }
            if let date = validators?.lastModified { lines.append("If-Modified-Since: \(date)") }
        }
        easy.setHeaders(lines)
        if purpose == .data { easy.set(CURLOPT_FRESH_CONNECT, hop.wantsNewConnection ? 1 : 0) }
    }
}

extension Duration {
    var wholeMilliseconds: Int {
        Int(clamping: attoseconds / 1_000_000_000_000_000)
    }
}
