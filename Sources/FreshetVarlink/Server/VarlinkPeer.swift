import Glibc

/// Who is at the other end of a connection, as the kernel knows it: at the time when it connected (unix(7),
/// SO_PEERCRED), whatever it has become since.
public struct VarlinkPeer: Hashable, Sendable {
    public var processIdentifier: Int32
    public var user: UInt32
    public var group: UInt32
    /// The groups that its user had besides (SO_PEERGROUPS, Linux 4.13).
    public var supplementaryGroups: [UInt32]

    public init(processIdentifier: Int32, user: UInt32, group: UInt32, supplementaryGroups: [UInt32] = []) {
        self.processIdentifier = processIdentifier
        self.user = user
        self.group = group
        self.supplementaryGroups = supplementaryGroups
    }

    /// Whether it has this group, as its own or as a supplementary one.
    public func isMember(of group: UInt32) -> Bool {
        self.group == group || supplementaryGroups.contains(group)
    }

    /// Asks the kernel about a connected Unix socket; nil: it is not one.
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
        // ERANGE says how much room it takes; the groups of a connection do not change, so the second call is enough.
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
