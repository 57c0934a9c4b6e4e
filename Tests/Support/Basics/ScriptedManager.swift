import Glibc
import Testing

/// The receiving end of NOTIFY_SOCKET, at an abstract address that the kernel chose.
package final class ScriptedManager: Sendable {
    package let address: String
    private let descriptor: Int32

    package init() throws {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        self.descriptor = descriptor
        try #require(descriptor >= 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        var length = socklen_t(MemoryLayout<sa_family_t>.size)  // only the family: autobind, unix(7)
        let bound = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.bind(descriptor, $0, length) }
        }
        try #require(bound == 0)
        length = socklen_t(MemoryLayout<sockaddr_un>.size)
        withUnsafeMutablePointer(to: &name) { pointer in
            _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        let count = Int(length) - MemoryLayout<sa_family_t>.size
        address = withUnsafeBytes(of: &name.sun_path) { path in
            "@" + String(decoding: path[1..<count], as: UTF8.self)
        }
    }

    deinit { close(descriptor) }

    /// The next datagram; nil if there is none.
    package func receive() -> String? {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
    }
}
