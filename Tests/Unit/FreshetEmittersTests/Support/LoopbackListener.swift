import Glibc

/// A TCP socket that listens on a free port of loopback. The caller closes it.
struct LoopbackListener {
    let descriptor: Int32
    let port: UInt16

    struct Failed: Error { var errno: Int32 }

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isListening else { throw Failed(errno: errno) }
        self.descriptor = descriptor
        port = UInt16(bigEndian: address.sin_port)
    }
}
