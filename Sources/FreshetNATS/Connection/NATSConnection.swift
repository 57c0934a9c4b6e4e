import CCurl
import FreshetEventLoop
import Glibc

/// A connection to one server: libcurl resolves the name, uses the proxy of the environment, and makes TLS; then this
/// object sends and receives bytes. Nothing here blocks.
///
/// Not `Sendable`: it belongs to its ``NATSClient`` and is used on the loop's thread only, also by libcurl's callbacks.
final class NATSConnection {
    /// What happened on the loop, for which the owner calls ``handle(_:)``.
    enum Event: Sendable {
        /// While libcurl connects.
        case socket(Int32, Readiness)
        case timer
        /// On the connection.
        case ready(Readiness)
    }

    /// The result of an event.
    enum Progress {
        case nothing
        /// The connection has been made.
        case connected
        /// Bytes may be there to read: ``receive(_:)``.
        case readable
        case failed(NATSError)
    }

    /// The bytes that one call of libcurl reads or writes: one record of TLS.
    private static let pieceSize = 16 << 10

    private let loop: EventLoop
    private let address: NATSServerAddress
    private let handles: CurlHandles
    private let onEvent: @Sendable (Event) -> Void
    private let timer: LoopTimer
    private var watches: [Int32: DescriptorWatch] = [:]
    /// The watch of the connection that has been made.
    private var watch: DescriptorWatch?
    private var isConnecting = false
    private let calls = CallLimit()
    private var outgoing: OutgoingBuffer
    /// A piece that libcurl could not send. OpenSSL requires that the same memory is passed again (SSL_write(3)), so
    /// the memory stays until all of it has been sent.
    private var piece: UnsafeMutableRawBufferPointer?
    private var unsent: Range<Int> = 0..<0

    /// Prepares a connection; ``start()`` begins it.
    ///
    /// - Parameters:
    ///   - outgoingLimit: the most bytes that wait to be sent.
    ///   - onEvent: called on the loop's thread.
    /// - Returns: nil if libcurl cannot be loaded, or the process is out of memory.
    init?(
        _ loop: EventLoop, to address: NATSServerAddress, _ options: NATSConnectionOptions, outgoingLimit: Int,
        onEvent: @escaping @Sendable (Event) -> Void
    ) {
        guard let handles = CurlHandles() else { return nil }
        self.loop = loop
        self.address = address
        self.handles = handles
        self.onEvent = onEvent
        timer = LoopTimer(loop, named: "NATS") { onEvent(.timer) }
        outgoing = OutgoingBuffer(limit: outgoingLimit)
        Self.configure(handles, address, options)
        // libcurl reads the answer of a proxy as long as bytes arrive, without a look at its timeout.
        freshet_curl_set_progress_function(handles.easy) { connection, _, _, _, _ in
            guard let connection else { return 1 }
            let me = Unmanaged<NATSConnection>.fromOpaque(connection).takeUnretainedValue()
            return me.calls.isExceeded(by: me) ? 1 : 0
        }
        // This object owns the handles, which switch all callbacks off before they are freed.
        let me = Unmanaged.passUnretained(self).toOpaque()
        freshet_curl_set_pointer(handles.easy, CURLOPT_XFERINFODATA, me)
        handles.set(CURLOPT_NOPROGRESS, 0)
        freshet_curl_multi_set_pointer(handles.multi, CURLMOPT_SOCKETDATA, me)
        freshet_curl_multi_set_socket_function(handles.multi) { _, descriptor, what, connection, _ in
            guard let connection else { return -1 }
            return Unmanaged<NATSConnection>.fromOpaque(connection).takeUnretainedValue().follow(descriptor, what)
        }
        freshet_curl_multi_set_pointer(handles.multi, CURLMOPT_TIMERDATA, me)
        freshet_curl_multi_set_timer_function(handles.multi) { _, milliseconds, connection in
            guard let connection else { return -1 }
            Unmanaged<NATSConnection>.fromOpaque(connection).takeUnretainedValue().setTimer(milliseconds)
            return 0
        }
    }

    deinit {
        watch?.cancel()
        for watch in watches.values { watch.cancel() }
        piece?.deallocate()
    }

    private static func configure(
        _ handles: CurlHandles, _ address: NATSServerAddress, _ options: NATSConnectionOptions
    ) {
        handles.set(CURLOPT_URL, address.url)
        handles.set(CURLOPT_PROTOCOLS_STR, "http,https")
        handles.set(CURLOPT_CONNECT_ONLY, 1)
        // Zero would mean libcurl's default.
        let timeout = min(max(options.connectTimeout, .milliseconds(1)), .seconds(3_600)).components
        handles.set(
            CURLOPT_CONNECTTIMEOUT_MS, Int(timeout.seconds) * 1_000 + Int(timeout.attoseconds / 1_000_000_000_000_000))
        // A proxy of the environment gets CONNECT: the protocol is not HTTP. A server on this machine needs no proxy.
        handles.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        if !address.usesTLS { handles.set(CURLOPT_NOPROXY, "*") }
        // The names of protocols in TLS (ALPN) are those of HTTP.
        handles.set(CURLOPT_SSL_ENABLE_ALPN, 0)
        // TLS 1.2 can begin a handshake in a connection that is in use: libcurl would then have to read before it sends.
        handles.set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_3))
        if let proxy = options.proxy { handles.set(CURLOPT_PROXY, proxy) }
        // libcurl must not use signals, which belong to the program.
        handles.set(CURLOPT_NOSIGNAL, 1)
        // A lookup runs on a thread that cannot be interrupted; the end of the connection must not wait for it.
        handles.set(CURLOPT_QUICK_EXIT, 1)
        // The smallest buffer that libcurl accepts: the bytes are received into the caller's buffer.
        handles.set(CURLOPT_BUFFERSIZE, 1_024)
        if let authorities = options.certificateAuthority {
            handles.set(CURLOPT_CAINFO, authorities)
            // Otherwise libcurl would also trust the system's directory besides the file.
            freshet_curl_set_string(handles.easy, CURLOPT_CAPATH, nil)
        }
        if let certificate = options.clientCertificate {
            handles.set(CURLOPT_SSLCERT, certificate.certificate)
            handles.set(CURLOPT_SSLKEY, certificate.key)
            // A key with a passphrase is an error: OpenSSL must not prompt for it on a terminal.
            handles.set(CURLOPT_KEYPASSWD, "")
        }
    }

    /// Whether a lookup of the name is in progress: its thread stays when this object is released.
    var waitsForLookup: Bool { isConnecting && !handles.isLookedUp }

    // MARK: Connecting

    /// Begins to connect; events follow.
    func start() throws(NATSError) {
        let code = curl_multi_add_handle(handles.multi, handles.easy)
        guard code == CURLM_OK else { throw failed(String(cString: curl_multi_strerror(code))) }
    }

    /// Handles an event of the loop.
    func handle(_ event: Event) -> Progress {
        var running: Int32 = 0
        switch event {
        case .socket(let descriptor, let readiness):
            guard watch == nil else { return .nothing }
            var events: Int32 = 0
            if !readiness.isDisjoint(with: [.read, .hangup]) { events |= CURL_CSELECT_IN }
            if readiness.contains(.write) { events |= CURL_CSELECT_OUT }
            if readiness.contains(.error) { events |= CURL_CSELECT_ERR }
            beginCall()
            curl_multi_socket_action(handles.multi, descriptor, events, &running)
            return connectingEnded()
        case .timer:
            beginCall()
            curl_multi_socket_action(handles.multi, CURL_SOCKET_TIMEOUT, 0, &running)
            return watch == nil ? connectingEnded() : .nothing
        case .ready(let readiness):
            guard watch != nil else { return .nothing }
            if readiness.contains(.write), let error = flush() { return .failed(error) }
            return readiness.isDisjoint(with: [.read, .hangup, .error]) ? .nothing : .readable
        }
    }

    private func beginCall() {
        isConnecting = watch == nil
        calls.beginCall()
    }

    private func connectingEnded() -> Progress {
        var left: Int32 = 0
        while let message = curl_multi_info_read(handles.multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE else { continue }
            let code = freshet_curl_message_result(message)
            isConnecting = false
            guard code == CURLE_OK else { return .failed(failed(reason(of: code))) }
            return beginConnection()
        }
        return .nothing
    }

    /// The connection has been made: from now on this object watches the socket.
    private func beginConnection() -> Progress {
        timer.disarm()
        for watch in watches.values { watch.cancel() }
        watches = [:]
        guard let socket = handles.socket else { return .failed(failed("libcurl has no connection")) }
        // Small messages are not delayed: libcurl sets TCP_NODELAY by default.
        do throws(SystemCallError) {
            let onEvent = onEvent
            watch = try loop.watch(socket, for: .read, named: "NATS") { onEvent(.ready($0)) }
            return .connected
        } catch {
            return .failed(.system(error))
        }
    }

    private func reason(of code: CURLcode) -> String {
        let words = handles.reason(of: code)
        // A server without this option sends INFO before TLS begins.
        return code == CURLE_SSL_CONNECT_ERROR ? "\(words); the server needs handshake_first: true" : words
    }

    private func failed(_ reason: String) -> NATSError {
        .connectionFailed(host: address.description, reason: reason)
    }

    // MARK: Bytes

    /// Receives one piece, and passes it to a function.
    ///
    /// - Returns: whether there may be more; false: the socket is empty.
    func receive(_ take: (UnsafeRawBufferPointer) -> Void) throws(NATSError) -> Bool {
        let (code, count) = withUnsafeTemporaryAllocation(byteCount: Self.pieceSize, alignment: 16) { buffer in
            var count = 0
            let code = curl_easy_recv(handles.easy, buffer.baseAddress, buffer.count, &count)
            if code == CURLE_OK, count > 0 { take(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            return (code, count)
        }
        switch code {
        case CURLE_OK where count > 0: return true
        case CURLE_OK: throw .closed(host: address.description, reason: nil)
        case CURLE_AGAIN: return false
        default: throw failed(handles.reason(of: code))
        }
    }

    /// The bytes that wait to be sent.
    var outgoingCount: Int { outgoing.count + unsent.count }

    /// Whether so many more bytes can be sent.
    func canSend(_ count: Int) -> Bool { outgoing.fits(count + unsent.count) }

    /// Adds bytes to those that wait; ``flush()`` sends them.
    func send(_ bytes: some Collection<UInt8>) { outgoing.append(bytes) }

    /// Sends as much as the socket accepts. Returns an error if the connection broke.
    func flush() -> NATSError? {
        while outgoingCount > 0 {
            let buffer = piece ?? .allocate(byteCount: Self.pieceSize, alignment: 16)
            piece = buffer
            if unsent.isEmpty { unsent = 0..<outgoing.take(into: buffer) }
            var count = 0
            let code = curl_easy_send(
                handles.easy, buffer.baseAddress?.advanced(by: unsent.lowerBound), unsent.count, &count)
            if code == CURLE_AGAIN { break }
            guard code == CURLE_OK, count > 0 else { return failed(handles.reason(of: code)) }
            unsent = (unsent.lowerBound + count)..<unsent.upperBound
        }
        if outgoingCount == 0 {
            piece?.deallocate()
            piece = nil
        }
        watch?.change(to: outgoingCount > 0 ? [.read, .write] : .read)
        return nil
    }

    // MARK: libcurl's callbacks

    private func follow(_ descriptor: Int32, _ what: Int32) -> Int32 {
        if what == CURL_POLL_REMOVE {
            watches.removeValue(forKey: descriptor)?.cancel()
            return 0
        }
        // The connection has been made: libcurl has nothing to wait for.
        guard watch == nil else { return 0 }
        var interest: Interest = []
        if what & CURL_POLL_IN != 0 { interest.insert(.read) }
        if what & CURL_POLL_OUT != 0 { interest.insert(.write) }
        if let watch = watches[descriptor] {
            watch.change(to: interest)
            return 0
        }
        do {
            let onEvent = onEvent
            watches[descriptor] = try loop.watch(descriptor, for: interest, named: "NATS") {
                onEvent(.socket(descriptor, $0))
            }
            return 0
        } catch {
            return -1  // libcurl fails the request (CURLM_ABORTED_BY_CALLBACK)
        }
    }

    private func setTimer(_ milliseconds: Int) {
        if milliseconds < 0 {
            timer.disarm()
        } else {
            timer.arm(at: .now + .milliseconds(milliseconds))
        }
    }
}
