import Glibc

/// A user that a process can become, with the group of that user.
struct ServiceUser: Hashable, Sendable {
    var identifier: UInt32
    var group: UInt32
    /// Nil: the user database has no entry with this number.
    var name: String?
    var home: String?

    /// The user that packages make for the service.
    static let standardName = "freshet"

    /// A name of the user database, or a number, which needs no entry there. Blocks on the name service. Nil: there is
    /// no such user.
    init?(named name: String) {
        if let entry = getpwnam(name) {
            self.init(entry.pointee.pw_uid, group: entry.pointee.pw_gid)
        } else if let number = UInt32(name), number != .max {
            self.init(number, group: number)
        } else {
            return nil
        }
    }

    /// - Parameter group: the group if the user database has no entry; root's group is never taken.
    init(_ identifier: UInt32, group: UInt32) {
        let entry = getpwuid(identifier)
        self.identifier = identifier
        self.group = entry?.pointee.pw_gid ?? (group == 0 ? identifier : group)
        name = entry?.pointee.pw_name.map { String(cString: $0) }
        home = entry?.pointee.pw_dir.map { String(cString: $0) }
    }

    /// For messages.
    var text: String { name ?? String(identifier) }
}
