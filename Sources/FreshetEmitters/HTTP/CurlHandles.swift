import CCurl
import Glibc

/// One libcurl request: the owner of an easy handle and of the memory that it uses.
///
/// A handle makes one request, and libcurl gets it once (``use()``). libcurl before 8.1 keeps a pointer to the last
/// header line of a response when it frees the lines before the handle's next request (`prevhead` in lib/headers.c,
/// curl's issue 11101). If the first header line of the next response begins with a blank, libcurl appends it to freed
/// memory, before any callback receives that line. curl_easy_reset(3) does not clear the pointer. Connections and
/// name-service answers belong to the ``MultiHandle``, so another handle uses them too.
///
/// Not `Sendable`: it stays on the thread of the client that made it.
final class EasyHandle {
    /// libcurl's handle, which callbacks and the multi handle use. Only this object frees it.
    let raw: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    /// The certificate of the server, or the issuer's that was rejected.
    let peerCertificate = PeerCertificate()
    private var headers: UnsafeMutablePointer<curl_slist>?
    /// Whether a request was made with the handle.
    private(set) var isUsed = false

    /// Returns nil if the process is out of memory, or the library cannot be loaded: ``HTTPClient/awaitLibrary()``.
    init?() {
        guard let raw = curl_easy_init() else { return nil }
        self.raw = raw
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        freshet_curl_set_pointer(raw, CURLOPT_ERRORBUFFER, errorText)
        peerCertificate.watch(raw)
    }

    deinit {
        // libcurl would otherwise report the progress of a request in progress to an owner that is being freed.
        set(CURLOPT_NOPROGRESS, 1)
        curl_easy_cleanup(raw)
        curl_slist_free_all(headers)
        errorText.deallocate()
    }

    /// Marks the handle as used. Returns whether it may be given to libcurl, which is allowed once.
    func use() -> Bool {
        defer { isUsed = true }
        return !isUsed
    }

    /// libcurl's message about the last failure; empty if there is no message.
    var errorMessage: String { String(cString: errorText) }

    /// Sets a number or a switch. The required libcurl (7.87) supports all options that this project sets, so a failure
    /// would be a programming error without consequence: the default stays.
    func set(_ option: CURLoption, _ value: Int) {
        freshet_curl_set_long(raw, option, value)
    }

    /// Sets a string, which libcurl copies; nil resets the option.
    func set(_ option: CURLoption, _ value: String?) {
        if let value {
            freshet_curl_set_string(raw, option, value)
        } else {
            freshet_curl_set_string(raw, option, nil)
        }
    }

    /// Sets bytes, which libcurl copies; nil resets the option.
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
            // nil: out of memory; the list so far stays valid.
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
        // The size must be set first: it determines how many bytes libcurl copies.
        freshet_curl_set_long(raw, CURLOPT_POSTFIELDSIZE, body.utf8.count)
        freshet_curl_set_string(raw, CURLOPT_COPYPOSTFIELDS, body)
    }

    /// A number from libcurl about the last request.
    func number(_ info: CURLINFO) -> Int {
        var value = 0
        freshet_curl_get_long(raw, info, &value)
        return value
    }

    /// Whether the connection's TLS session has buffered data that libcurl has not read.
    var hasPendingInput: Bool { freshet_curl_has_pending(raw) != 0 }

    /// A size, or a time in microseconds, from libcurl about the last request; nil if it is unknown (-1).
    func offset(_ info: CURLINFO) -> UInt64? {
        var value: curl_off_t = -1
        freshet_curl_get_off(raw, info, &value)
        return UInt64(exactly: value)
    }
}

/// The owner of a multi handle: the requests in progress, their connections and the shared name-service answers.
///
/// Not `Sendable`: it stays on the thread of the client that made it.
final class MultiHandle {
    let raw: UnsafeMutableRawPointer
    /// The sockets of the handle's connections. They are closed at the latest when the handle is freed.
    let sockets = ConnectionSockets()

    /// Returns nil if the process is out of memory, or the library cannot be loaded: ``HTTPClient/awaitLibrary()``.
    init?() {
        guard let raw = curl_multi_init() else { return nil }
        self.raw = raw
    }

    deinit {
        // Closing connections would otherwise call back into an owner that is being freed.
        freshet_curl_multi_set_socket_function(raw, nil)
        freshet_curl_multi_set_timer_function(raw, nil)
        curl_multi_cleanup(raw)
    }
}
