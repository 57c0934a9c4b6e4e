import Glibc

/// Two connected stream sockets (socketpair(2)) that are closed when a program is executed.
package enum SocketPair {
    package static func make() throws(SystemCallError) -> (OwnedDescriptor, OwnedDescriptor) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw SystemCallError("socketpair", errno: errno)
        }
        return (OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1]))
    }
}
