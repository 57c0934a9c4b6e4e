import FreshetEventLoop
import Glibc

/// The system calls that check and watch paths. On a file system that does not respond (NFS without its server) each
/// call with a path may block for any time, and a signal does not interrupt it.
struct FileCalls: Sendable {
    /// lstat(2).
    var status: @Sendable (_ path: String) throws(SystemCallError) -> stat
    /// readlink(2); nil if it cannot be read.
    var target: @Sendable (_ link: String) -> String?
    /// inotify_init1(2).
    var open: @Sendable () throws(SystemCallError) -> InotifyDescriptor
    /// inotify_add_watch(2).
    var add: @Sendable (InotifyDescriptor, _ path: String, InotifyEvents) throws(SystemCallError) -> Int32

    /// The kernel's calls.
    static let kernel = FileCalls(
        status: { (path) throws(SystemCallError) in
            var status = stat()
            guard lstat(path, &status) == 0 else { throw SystemCallError("lstat", errno: errno, subject: path) }
            return status
        },
        target: { link in
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
                guard let start = buffer.baseAddress else { return nil }
                let count = readlink(link, start, buffer.count)
                guard count > 0 else { return nil }
                return String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
            }
        },
        open: { () throws(SystemCallError) in try InotifyDescriptor() },
        add: { (inotify, path, events) throws(SystemCallError) in try inotify.add(path, for: events) })
}
