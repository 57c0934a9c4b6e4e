import Glibc

/// A user group of this machine.
struct SystemGroup: Hashable, Sendable {
    let identifier: UInt32

    /// The maximum size of a group's entry with all members, in bytes. A larger group is not found.
    private static let entryLimit = 1 << 20

    /// Looks up a name with the name service, which may block, or uses a number. Nil: there is no such group.
    init?(named name: String) {
        var entry = group()
        var size = 4_096
        while size <= Self.entryLimit {
            var buffer = [CChar](repeating: 0, count: size)
            var found: UnsafeMutablePointer<group>?
            let result = getgrnam_r(name, &entry, &buffer, buffer.count, &found)
            if result == ERANGE {
                size *= 4
                continue
            }
            if result == 0, found != nil {
                identifier = entry.gr_gid
                return
            }
            break
        }
        // The highest number is chown(2)'s "leave it".
        guard let number = UInt32(name), number != .max else { return nil }
        identifier = number
    }

    /// Whether this process may give files to the group, because it is a member of the group or root.
    var isOwn: Bool {
        if geteuid() == 0 || getegid() == identifier { return true }
        let count = getgroups(0, nil)
        guard count > 0 else { return false }
        var groups = [gid_t](repeating: 0, count: Int(count))
        let filled = getgroups(count, &groups)
        return filled > 0 && groups.prefix(Int(filled)).contains(identifier)
    }
}
