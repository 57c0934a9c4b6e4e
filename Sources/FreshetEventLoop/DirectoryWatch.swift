import CLinux
import Glibc

/// Tells that names in a directory have gone, or have come by a rename: inotify(7) on a loop.
///
/// It says that something happened, not what: look at the names that you care for. Events that come together are told
/// once. When the directory itself goes away it is told once more, and then nothing.
public final class DirectoryWatch: Sendable {
    /// Room for many events at once; those that do not fit are read next.
    static let bufferSize = 4_096

    private let descriptor: OwnedDescriptor
    private let watch: DescriptorWatch

    /// - Parameters:
    ///   - loop: waits for the changes.
    ///   - path: the directory.
    ///   - handler: called on the loop's thread.
    public init(
        _ loop: EventLoop, path: String, _ handler: @escaping @Sendable () -> Void
    ) throws(SystemCallError) {
        let descriptor = try OwnedDescriptor(
            inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK)), of: "inotify_init1")
        let events =
            UInt32(IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF) | UInt32(IN_ONLYDIR)
        guard inotify_add_watch(descriptor.rawValue, path, events) >= 0 else {
            throw SystemCallError("inotify_add_watch", errno: errno, subject: path)
        }
        self.descriptor = descriptor
        watch = try loop.watch(descriptor.rawValue, for: .read) { _ in
            withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 8) { buffer in
                while read(descriptor.rawValue, buffer.baseAddress, buffer.count) > 0 {}
            }
            handler()
        }
    }

    deinit { watch.cancel() }
}
