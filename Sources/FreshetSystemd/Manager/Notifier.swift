import CSystemd  // timespec: a whole-module build takes it for this module's
import Glibc

/// Sends the state of the service to the service manager: the datagrams of sd_notify(3).
///
/// Without `NOTIFY_SOCKET` (started by hand, in a container) every call does nothing. A datagram is sent in one system
/// call and never waits for a reply. The variable is read once, from the given environment, and not removed from the
/// process's own environment: children get a separate environment.
///
/// ```swift
/// let notifier = Notifier(environment: environment)
/// notifier.ready(status: "3 pipelines")
/// ```
///
/// It may be used from any thread.
public struct Notifier: Sendable {
    /// The maximum length of `STATUS=` in bytes: one line for people. Longer text is truncated.
    public static let statusLimit = 512

    private let address: SocketAddress?

    /// - Parameter environment: The process's environment; only `NOTIFY_SOCKET` is used.
    public init(environment: [String: String]) {
        address = environment["NOTIFY_SOCKET"].flatMap(SocketAddress.init(notifySocket:))
    }

    /// Whether there is a service manager to notify.
    public var isConnected: Bool { address != nil }

    /// `READY=1`: the service is up, or a reload has ended.
    @discardableResult
    public func ready(status: String? = nil) -> Bool {
        send(["READY=1"] + Self.line(forStatus: status))
    }

    /// `RELOADING=1`, with the `MONOTONIC_USEC=` that `Type=notify-reload` requires in the same datagram.
    ///
    /// Call ``ready(status:)`` afterwards, whatever the result of the reload is.
    @discardableResult
    public func reloading(status: String? = nil) -> Bool {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return reloading(atMicroseconds: UInt64(now.tv_sec) * 1_000_000 + UInt64(now.tv_nsec) / 1_000, status: status)
    }

    func reloading(atMicroseconds monotonic: UInt64, status: String?) -> Bool {
        send(["RELOADING=1", "MONOTONIC_USEC=\(monotonic)"] + Self.line(forStatus: status))
    }

    /// `STOPPING=1`: the service is stopping.
    @discardableResult
    public func stopping(status: String? = nil) -> Bool {
        send(["STOPPING=1"] + Self.line(forStatus: status))
    }

    /// `STATUS=`: one line for people, which `systemctl status` shows.
    @discardableResult
    public func status(_ text: String) -> Bool {
        send(Self.line(forStatus: text))
    }

    /// `WATCHDOG=1`: the service is alive; see ``Watchdog`` for the interval.
    @discardableResult
    public func watchdog() -> Bool {
        send(["WATCHDOG=1"])
    }

    private static func line(forStatus status: String?) -> [String] {
        guard let status else { return [] }
        // A line break would begin another assignment.
        return ["STATUS=" + PlainText.escaping(status).truncated(toBytes: statusLimit)]
    }

    /// Returns whether the datagram was sent.
    private func send(_ assignments: [String]) -> Bool {
        guard let address else { return false }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let bytes = Array(assignments.joined(separator: "\n").utf8)
        return address.withPointer { pointer, length in
            // The service manager reads its queue immediately, so do not wait for a full one (MSG_DONTWAIT).
            sendto(
                descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT), pointer, length)
        } == bytes.count
    }
}

/// The address of a Unix socket in the notation of `NOTIFY_SOCKET`.
struct SocketAddress: Sendable {
    private let address: sockaddr_un
    private let length: socklen_t

    /// An absolute path, or `@` and an abstract name (unix(7)); nil for anything else, such as `vsock:`.
    init?(notifySocket text: String) {
        var name = Array(text.utf8)
        guard let first = name.first, first == UInt8(ascii: "/") || first == UInt8(ascii: "@"), name.count > 1 else {
            return nil
        }
        let isAbstract = first == UInt8(ascii: "@")
        if isAbstract { name[0] = 0 }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { path -> Bool in
            // A path ends with a NUL within the field; an abstract name may fill the field.
            guard name.count + (isAbstract ? 0 : 1) <= path.count else { return false }
            path.copyBytes(from: name)
            return true
        }
        guard fits, let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) else { return nil }
        self.address = address
        length = socklen_t(offset + name.count + (isAbstract ? 0 : 1))
    }

    func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }
}
