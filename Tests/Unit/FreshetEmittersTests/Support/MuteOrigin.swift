import Glibc
import Synchronization
import TestSupport

/// An origin on a free port of loopback that accepts connections and sends nothing.
final class MuteOrigin: Sendable {
    let port: UInt16
    private let listener: Int32

    init() throws {
        let loopback = try LoopbackListener()
        listener = loopback.descriptor
        port = loopback.port
    }

    deinit { close(listener) }

    var url: String { "https://127.0.0.1:\(port)/" }

    /// Blocks until a client connects. Returns -1 after a timeout, which only a failing test reaches.
    func connection() -> Int32 {
        var poller = pollfd(descriptor: listener)
        guard poll(&poller, 1, testTimeoutMilliseconds) == 1 else { return -1 }
        let connection = accept(listener, nil, nil)
        limitSends(on: connection)
        return connection
    }

    /// Whether the client's end is still open.
    static func isOpen(_ connection: Int32) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = recv(connection, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count == 0 { return false }
            if count < 0 { return errno == EAGAIN }
        }
    }
}
