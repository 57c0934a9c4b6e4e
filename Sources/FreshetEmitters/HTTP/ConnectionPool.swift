import CCurl
import FreshetEventLoop
import Glibc

/// The connections and name-service answers of one network epoch: a multi handle, the loop's watches on its sockets,
/// and its timer.
///
/// Not `Sendable`: it belongs to its ``HTTPClient`` and is touched on the loop's thread only, by libcurl's callbacks
/// too.
final class ConnectionPool {
    private let loop: EventLoop
    private let multi: MultiHandle
    private let calls = CallLimit()
    private let onReady: @Sendable (Int32, Readiness) -> Void
    private var timer: LoopTimer
    private var watches: [Int32: DescriptorWatch] = [:]
    private var exchanges: [UnsafeMutableRawPointer: HTTPExchange] = [:]

    /// - Parameters:
    ///   - onReady: called on the loop's thread when a socket is ready; it calls ``socket(_:is:)``.
    ///   - onTimer: called on the loop's thread when libcurl's timer fires; it calls ``timeIsUp()``.
    /// - Returns: nil if libcurl cannot be loaded, or the process is out of memory.
    init?(
        _ loop: EventLoop, onReady: @escaping @Sendable (Int32, Readiness) -> Void,
        onTimer: @escaping @Sendable () -> Void
    ) {
        guard let multi = MultiHandle() else { return nil }
        self.loop = loop
        self.multi = multi
        self.onReady = onReady
        timer = LoopTimer(loop, named: "HTTP", onTimer)
        // This object owns the multi handle, which resets both callbacks before it is freed.
        let me = Unmanaged.passUnretained(self).toOpaque()
        freshet_curl_multi_set_pointer(multi.raw, CURLMOPT_SOCKETDATA, me)
        freshet_curl_multi_set_socket_function(multi.raw) { _, descriptor, what, pool, _ in
            guard let pool else { return -1 }
            return Unmanaged<ConnectionPool>.fromOpaque(pool).takeUnretainedValue().watch(descriptor, what)
        }
        freshet_curl_multi_set_pointer(multi.raw, CURLMOPT_TIMERDATA, me)
        freshet_curl_multi_set_timer_function(multi.raw) { _, milliseconds, pool in
            guard let pool else { return -1 }
            Unmanaged<ConnectionPool>.fromOpaque(pool).takeUnretainedValue().setTimer(milliseconds)
            return 0
        }
    }

    var isIdle: Bool { exchanges.isEmpty }

    /// Starts a prepared hop. Returns libcurl's error if libcurl does not accept the hop. A handle that has made a
    /// request is never given to libcurl again (``EasyHandle``).
    func start(_ exchange: HTTPExchange) -> CURLMcode {
        guard exchange.easy.use() else { return CURLM_BAD_EASY_HANDLE }
        exchanges[exchange.easy.raw] = exchange
        multi.sockets.serve(exchange.easy)
        exchange.sockets = multi.sockets
        exchange.calls = calls
        let code = curl_multi_add_handle(multi.raw, exchange.easy.raw)
        if code != CURLM_OK { exchanges[exchange.easy.raw] = nil }
        return code
    }

    /// Removes a request. If the request was in progress, its connection is closed when this returns.
    func remove(_ exchange: HTTPExchange) {
        guard exchanges.removeValue(forKey: exchange.easy.raw) != nil else { return }
        curl_multi_remove_handle(multi.raw, exchange.easy.raw)
    }

    /// Continues a paused request. Data that has already arrived is delivered before this returns.
    ///
    /// - Returns: an error if that ends the request, which has then been removed from the pool.
    func resume(_ exchange: HTTPExchange) -> CURLcode {
        guard exchanges[exchange.easy.raw] != nil else { return CURLE_OK }
        calls.beginCall()
        let code = curl_easy_pause(exchange.easy.raw, CURLPAUSE_CONT)
        // libcurl does not remove the request itself.
        if code != CURLE_OK { remove(exchange) }
        return code
    }

    /// Notifies libcurl that a socket is ready. Call ``takeEnded()`` afterwards.
    func socket(_ descriptor: Int32, is readiness: Readiness) {
        var events: Int32 = 0
        if !readiness.isDisjoint(with: [.read, .hangup]) { events |= CURL_CSELECT_IN }
        if readiness.contains(.write) { events |= CURL_CSELECT_OUT }
        if readiness.contains(.error) { events |= CURL_CSELECT_ERR }
        var running: Int32 = 0
        calls.beginCall()
        curl_multi_socket_action(multi.raw, descriptor, events, &running)
    }

    /// Notifies libcurl that its timer has fired. Call ``takeEnded()`` afterwards.
    func timeIsUp() {
        var running: Int32 = 0
        calls.beginCall()
        curl_multi_socket_action(multi.raw, CURL_SOCKET_TIMEOUT, 0, &running)
    }

    /// Removes and returns the next request that has ended; nil if no request has ended.
    func takeEnded() -> (HTTPExchange, CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi.raw, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            let code = freshet_curl_message_result(message)
            guard let exchange = exchanges[easy] else { continue }
            remove(exchange)
            return (exchange, code)
        }
        return nil
    }

    // MARK: libcurl's callbacks

    private func watch(_ descriptor: Int32, _ what: Int32) -> Int32 {
        if what == CURL_POLL_REMOVE {
            watches.removeValue(forKey: descriptor)?.cancel()
            return 0
        }
        var interest: Interest = []
        if what & CURL_POLL_IN != 0 { interest.insert(.read) }
        if what & CURL_POLL_OUT != 0 { interest.insert(.write) }
        if let watch = watches[descriptor] {
            watch.change(to: interest)
            return 0
        }
        do {
            let onReady = onReady
            watches[descriptor] = try loop.watch(descriptor, for: interest, named: "HTTP") { onReady(descriptor, $0) }
            return 0
        } catch {
            return -1  // libcurl fails the requests in progress (CURLM_ABORTED_BY_CALLBACK)
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
