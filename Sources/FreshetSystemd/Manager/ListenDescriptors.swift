import Glibc

/// Sockets that the service manager opened for this process (socket activation, sd_listen_fds(3)).
public struct ListenDescriptors: Hashable, Sendable {
    /// One inherited descriptor.
    public struct Item: Hashable, Sendable {
        /// The descriptor, open and now close-on-exec; the caller closes it.
        public let descriptor: Int32
        /// `FileDescriptorName=` of the socket unit; `unknown` if it is not set.
        public let name: String
    }

    /// The number of the first inherited descriptor (SD_LISTEN_FDS_START).
    public static let first: Int32 = 3
    /// The maximum number of descriptors; with a larger count all are ignored, because the environment is broken.
    public static let limit = 1_024

    /// Sorted by descriptor.
    public let items: [Item]

    /// Takes ownership of this process's descriptors, and marks each as close-on-exec, so that no child inherits it.
    ///
    /// - Parameter environment: The variables `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES` are used. The result is
    ///   empty if `LISTEN_PID` is another process: a child has inherited the variables.
    public init(environment: [String: String]) {
        self.init(environment: environment, process: getpid())
        for item in items {
            let flags = fcntl(item.descriptor, F_GETFD)
            if flags >= 0 { _ = fcntl(item.descriptor, F_SETFD, flags | FD_CLOEXEC) }
        }
    }

    /// Reads the variables for a process, without changing a descriptor.
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

    /// The descriptors with this name.
    public func descriptors(named name: String) -> [Int32] {
        items.filter { $0.name == name }.map(\.descriptor)
    }
}
