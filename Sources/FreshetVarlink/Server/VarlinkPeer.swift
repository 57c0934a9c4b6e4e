import Glibc

/// The credentials of the client of a connection, as the kernel recorded them when it connected (unix(7), SO_PEERCRED).
/// Later changes of the client do not count.
public struct VarlinkPeer: Hashable, Sendable {
    public var processIdentifier: Int32
    public var user: UInt32
    public var group: UInt32
    /// The supplementary groups of the client (SO_PEERGROUPS, Linux 4.13).
    public var supplementaryGroups: [UInt32]

    public init(processIdentifier: Int32, user: UInt32, group: UInt32, supplementaryGroups: [UInt32] = []) {
        self.processIdentifier = processIdentifier
        self.user = user
        self.group = group
        self.supplementaryGroups = supplementaryGroups
    }

    /// Whether the client has this group, as its primary or a supplementary group.
    public func isMember(of group: UInt32) -> Bool {
        self.group == group || supplementaryGroups.contains(group)
    }

    /// Reads the credentials of a connected Unix socket; nil: the descriptor is not such a socket.
    init?(of descriptor: Int32) {
        // struct ucred: pid, uid, gid.
        var credentials: [UInt32] = [0, 0, 0]
        var length = socklen_t(12)
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0, length == 12 else {
            return nil
        }
        self.init(
            processIdentifier: Int32(bitPattern: credentials[0]), user: credentials[1], group: credentials[2],
            supplementaryGroups: Self.groups(of: descriptor))
    }

    private static func groups(of descriptor: Int32) -> [UInt32] {
        var groups = [UInt32](repeating: 0, count: 32)
        // After ERANGE, the length is the size that is needed. The groups of a connection do not change, so a second
        // call is enough.
        for _ in 0..<2 {
            var length = socklen_t(groups.count * 4)
            if getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, &groups, &length) == 0 {
                return Array(groups.prefix(Int(length) / 4))
            }
            guard errno == ERANGE else { return [] }
            groups = [UInt32](repeating: 0, count: Int(length) / 4)
        }
        return []
    }
}
