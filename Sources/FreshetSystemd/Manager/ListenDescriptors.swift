import Glibc

/// Sockets that the service manager opened for this process (socket activation, sd_listen_fds(3)).
public struct ListenDescriptors: Hashable, Sendable {
    /// One inherited descriptor.
    public struct Item: Hashable, Sendable {
        /// The descriptor, open and now close-on-exec; its owner closes it.
        public let descriptor: Int32
        /// `FileDescriptorName=` of the socket unit; `unknown` if none was said.
        public let name: String
    }

    /// The first descriptor that is handed over (SD_LISTEN_FDS_START).
    public static let first: Int32 = 3
    /// More than this is a broken environment, not a service: nothing is taken.
    public static let limit = 1_024

    /// In the order of the descriptors.
    public let items: [Item]

    /// Takes over what was meant for this process, and marks each as close-on-exec, so that no child gets it.
    ///
    /// - Parameter environment: looked at are `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`. It names nothing if
    ///   `LISTEN_PID` is another process: the variables were inherited by a child.
    public init(environment: [String: String]) {
        self.init(environment: environment, process: getpid())
        for item in items {
            let flags = fcntl(item.descriptor, F_GETFD)
            if flags >= 0 { _ = fcntl(item.descriptor, F_SETFD, flags | FD_CLOEXEC) }
        }
    }

    /// What the variables say to a process, without touching a descriptor.
    init(environment: [String: String], process: Int32) {
        guard let owner = environment["LISTEN_PID"].flatMap(Int32.init), owner == process,
            let count = environment["LISTEN_FDS"].flatMap(Int.init), (1...Self.limit).contains(count)
        else {
            items = []
            return
        }
        let names =
            environment["LISTEN_FDNAMES"]?.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            ?? []
        items = (0..<count).map { index in
            Item(descriptor: Self.first + Int32(index), name: index < names.count ? names[index] : "unknown")
        }
    }

    /// The descriptors of one name.
    public func descriptors(named name: String) -> [Int32] {
        items.filter { $0.name == name }.map(\.descriptor)
    }
}
