import CCurl
import Glibc

/// One request of libcurl's: the owner of an easy handle and of what it points to.
///
/// Not `Sendable`: it stays on the thread of the client that made it.
final class EasyHandle {
    /// libcurl's handle, which callbacks and the multi handle know. It is never freed by anyone else.
    let raw: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private var headers: UnsafeMutablePointer<curl_slist>?

    /// Returns nil when memory has run out, the one reason for which libcurl makes no handle.
    init?() {
        guard let raw = curl_easy_init() else { return nil }
        self.raw = raw
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        freshet_curl_set_pointer(raw, CURLOPT_ERRORBUFFER, errorText)
    }

    deinit {
        curl_easy_cleanup(raw)
        curl_slist_free_all(headers)
        errorText.deallocate()
    }

    /// Makes the handle as good as new, but for what it may know of TLS sessions. It must not be under way.
    func reset() {
        curl_easy_reset(raw)
        curl_slist_free_all(headers)
        headers = nil
        clearError()
        freshet_curl_set_pointer(raw, CURLOPT_ERRORBUFFER, errorText)
    }

    /// What libcurl says about the last failure, empty if it said nothing.
    var errorMessage: String { String(cString: errorText) }

    /// Forgets what was said about the request before.
    func clearError() { errorText[0] = 0 }

    /// Sets a number or a switch. The options that this project sets are all known to the libcurl that it needs
    /// (7.87), so that a failure is a programming error of no consequence: the default stays.
    func set(_ option: CURLoption, _ value: Int) {
        freshet_curl_set_long(raw, option, value)
    }

    /// Sets a string, which libcurl copies; nil takes it back.
    func set(_ option: CURLoption, _ value: String?) {
        if let value {
            freshet_curl_set_string(raw, option, value)
        } else {
            freshet_curl_set_string(raw, option, nil)
        }
    }

    /// Sets bytes, which libcurl copies; nil takes them back.
    func setBlob(_ option: CURLoption, _ value: [UInt8]?) {
        guard var bytes = value else {
            freshet_curl_set_pointer(raw, option, nil)
            return
        }
        bytes.withUnsafeMutableBytes { bytes in
            var blob = curl_blob(data: bytes.baseAddress, len: bytes.count, flags: UInt32(CURL_BLOB_COPY))
            freshet_curl_set_pointer(raw, option, &blob)
        }
    }

    /// Replaces the request's own header lines.
    func setHeaders(_ lines: [String]) {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines {
            // nil: memory has run out; the list so far stays valid.
            list = curl_slist_append(list, line) ?? list
        }
        freshet_curl_set_pointer(raw, CURLOPT_HTTPHEADER, list)
        curl_slist_free_all(headers)
        headers = list
    }

    /// Makes the request a POST with a body, which libcurl copies; nil makes it a GET again.
    func setBody(_ body: String?) {
        guard let body else {
            freshet_curl_set_long(raw, CURLOPT_HTTPGET, 1)
            return
        }
        freshet_curl_set_long(raw, CURLOPT_POST, 1)
        // The size first: by it libcurl knows how much it is to copy.
        freshet_curl_set_long(raw, CURLOPT_POSTFIELDSIZE, body.utf8.count)
        freshet_curl_set_string(raw, CURLOPT_COPYPOSTFIELDS, body)
    }

    /// A number that libcurl knows of the last request.
    func number(_ info: CURLINFO) -> Int {
        var value = 0
        freshet_curl_get_long(raw, info, &value)
        return value
    }

    /// Whether the TLS session of the connection has read something that libcurl has not.
    var hasPendingInput: Bool { freshet_curl_has_pending(raw) != 0 }

    /// A size or a time in microseconds that libcurl knows of the last request; nil if it does not know (-1).
    func offset(_ info: CURLINFO) -> UInt64? {
        var value: curl_off_t = -1
        freshet_curl_get_off(raw, info, &value)
        return UInt64(exactly: value)
    }
}

/// The owner of a multi handle: the requests under way, their connections and the name-service answers that they share.
///
/// Not `Sendable`: it stays on the thread of the client that made it.
final class MultiHandle {
    let raw: UnsafeMutableRawPointer
    /// Those of its connections. They are closed when the handle goes at the latest.
    let sockets = ConnectionSockets()

    /// Returns nil when memory has run out.
    init?() {
        guard let raw = curl_multi_init() else { return nil }
        self.raw = raw
    }

    deinit {
        // Closing connections would call back into an owner that is going away.
        freshet_curl_multi_set_socket_function(raw, nil)
        freshet_curl_multi_set_timer_function(raw, nil)
        curl_multi_cleanup(raw)
    }
}

/// Makes libcurl ready. Thread-safe since 7.84, and counted; it is never taken back, since other parts of a process may
/// use libcurl and libcrypto too.
func initializeCurl() {
    curl_global_init(Int(CURL_GLOBAL_SSL))
}
