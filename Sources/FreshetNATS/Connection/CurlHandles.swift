import CCurl

/// The libcurl handles of one connection: an easy handle with its options, and a multi handle that drives the
/// connecting. The connection, its TLS session and the answers of the resolver belong to them and end with them.
///
/// Not `Sendable`: they stay on the loop's thread.
final class CurlHandles {
    let easy: UnsafeMutableRawPointer
    let multi: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>

    /// Returns nil if libcurl cannot be loaded, or the process is out of memory: ``missingReason``.
    init?() {
        // The call is thread-safe since 7.84, and counted; HTTPClient makes it too.
        curl_global_init(Int(CURL_GLOBAL_SSL))
        guard let easy = curl_easy_init() else { return nil }
        guard let multi = curl_multi_init() else {
            curl_easy_cleanup(easy)
            return nil
        }
        self.easy = easy
        self.multi = multi
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        freshet_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        freshet_curl_limit_tls_messages(easy)
    }

    /// Why libcurl has made no handle.
    static var missingReason: String {
        freshet_curl_problem().map {
            "libcurl cannot be loaded; install libcurl 7.87 or newer (Debian: apt install libcurl4): "
                + String(cString: $0)
        } ?? "out of memory"
    }

    deinit {
        // Closing the connection would otherwise call back into an owner that is being freed.
        set(CURLOPT_NOPROGRESS, 1)
        freshet_curl_multi_set_socket_function(multi, nil)
        freshet_curl_multi_set_timer_function(multi, nil)
        curl_multi_remove_handle(multi, easy)
        curl_easy_cleanup(easy)
        curl_multi_cleanup(multi)
        errorText.deallocate()
    }

    /// Sets a number or a switch. The required libcurl (7.87) has all options that are set here.
    func set(_ option: CURLoption, _ value: Int) {
        freshet_curl_set_long(easy, option, value)
    }

    /// Sets a string, which libcurl copies.
    func set(_ option: CURLoption, _ value: String) {
        freshet_curl_set_string(easy, option, value)
    }

    /// libcurl's words for a failure.
    func reason(of code: CURLcode) -> String {
        if code == CURLE_ABORTED_BY_CALLBACK { return "the proxy's answer has no end" }
        var text = String(cString: errorText)
        if text.isEmpty { text = String(cString: curl_easy_strerror(code)) }
        // libcurl quotes the URL of a proxy, perhaps without its end, so its password cannot be found in it.
        if code == CURLE_COULDNT_RESOLVE_PROXY || text.hasPrefix("Unsupported proxy") {
            text = String(text.prefix { $0 != "'" }) + "(see the proxy's URL)"
        }
        return Text.escaped(Text.withoutUserInformation(text))
    }

    /// The socket of the connection; nil: there is no connection.
    var socket: Int32? {
        var socket: curl_socket_t = -1
        guard freshet_curl_get_socket(easy, &socket) == CURLE_OK, socket >= 0 else { return nil }
        return socket
    }

    /// Whether the lookup of the name has ended; an address needs none.
    var isLookedUp: Bool {
        var time: curl_off_t = 0
        return freshet_curl_get_off(easy, CURLINFO_NAMELOOKUP_TIME_T, &time) == CURLE_OK && time > 0
    }
}
