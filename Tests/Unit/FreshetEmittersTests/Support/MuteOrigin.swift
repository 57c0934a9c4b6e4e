import Glibc
import Synchronization

/// An origin on a free port of loopback that takes connections and says nothing on them.
final class MuteOrigin: Sendable {
    let port: UInt16
    private let listener: Int32

    struct NoListener: Error { var errno: Int32 }

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        guard isListening else { throw NoListener(errno: errno) }
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(listener) }

    var url: String { "https://127.0.0.1:\(port)/" }

    /// Blocks until somebody connects, at most for a time that is only hit in failure; then -1.
    func connection() -> Int32 {
        var poller = pollfd(descriptor: listener)
        guard poll(&poller, 1, ScriptedOrigin.patience) == 1 else { return -1 }
        return accept(listener, nil, nil)
    }

    /// Whether the client has its end still.
    static func isOpen(_ connection: Int32) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = recv(connection, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count == 0 { return false }
            if count < 0 { return errno == EAGAIN }
        }
    }
}
