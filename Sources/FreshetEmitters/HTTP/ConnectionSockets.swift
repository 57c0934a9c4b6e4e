import CCurl
import Glibc

/// The sockets of a pool's connections, by their local ports.
///
/// libcurl does not report the socket to which it is about to write a request (CURLINFO_ACTIVESOCKET is -1 until the
/// request has ended), but it reports the local port. So this object opens and closes the sockets for libcurl and maps
/// local ports to sockets.
///
/// Not `Sendable`: it belongs to its ``MultiHandle`` and is used on the loop's thread only, by libcurl's callbacks.
final class ConnectionSockets {
    /// Sockets whose local port is not known yet, and sockets with a path, which have no port.
    private var unbound: Set<Int32> = []
    private var byPort: [Int32: Int32] = [:]
    private var ports: [Int32: Int32] = [:]

    /// Sets the callbacks by which a request opens and closes its sockets here. The sockets may outlive the request,
    /// until the pool's multi handle is freed.
    func serve(_ easy: EasyHandle) {
        let me = Unmanaged.passUnretained(self).toOpaque()
        freshet_curl_set_pointer(easy.raw, CURLOPT_OPENSOCKETDATA, me)
        freshet_curl_set_open_function(easy.raw) { sockets, _, address in
            guard let sockets, let address else { return -1 }
            let descriptor = freshet_curl_open(address)
            if descriptor >= 0 {
                Unmanaged<ConnectionSockets>.fromOpaque(sockets).takeUnretainedValue().unbound.insert(descriptor)
            }
            return descriptor
        }
        freshet_curl_set_pointer(easy.raw, CURLOPT_CLOSESOCKETDATA, me)
        freshet_curl_set_close_function(easy.raw) { sockets, descriptor in
            if let sockets {
                Unmanaged<ConnectionSockets>.fromOpaque(sockets).takeUnretainedValue().forget(descriptor)
            }
            return close(descriptor)
        }
    }

    private func forget(_ descriptor: Int32) {
        unbound.remove(descriptor)
        if let port = ports.removeValue(forKey: descriptor) { byPort[port] = nil }
    }

    /// Whether the connection with a local port has data to read, or was closed by the remote end.
    ///
    /// - Parameter localPort: 0 if the connection is to a socket with a path. Then all such connections are checked,
    ///   because they cannot be distinguished.
    func hasInput(localPort: Int32) -> Bool {
        guard localPort > 0 else { return unbound.contains(where: Self.hasInput) }
        return descriptor(localPort: localPort).map(Self.hasInput) ?? true
    }

    /// Finds and stores the socket of a local port early, while few sockets have an unknown port.
    func learn(localPort: Int32) {
        if localPort > 0 { _ = descriptor(localPort: localPort) }
    }

    private func descriptor(localPort: Int32) -> Int32? {
        if let known = byPort[localPort] { return known }
        for descriptor in unbound where Self.localPort(of: descriptor) == localPort {
            unbound.remove(descriptor)
            byPort[localPort] = descriptor
            ports[descriptor] = localPort
            return descriptor
        }
        return nil
    }

    private static func localPort(of descriptor: Int32) -> Int32? {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isKnown = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) == 0 }
        }
        guard isKnown else { return nil }
        let family = Int32(address.ss_family)
        guard family == AF_INET || family == AF_INET6 else { return nil }
        // The port of either family is after the two bytes of the family.
        return withUnsafeBytes(of: &address) { Int32($0[2]) << 8 | Int32($0[3]) }
    }

    private static func hasInput(_ descriptor: Int32) -> Bool {
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&poller, 1, 0) > 0
    }
}
