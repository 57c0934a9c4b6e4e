import Glibc

/// The lock of a state directory: held as long as this value lives, and by no child process.
///
/// `flock` and not `fcntl`: a record lock is lost as soon as any descriptor of the file is closed in this process.
struct StateLock: ~Copyable, Sendable {
    private let descriptor: Int32

    /// Takes the lock or says who has it.
    init(_ layout: CacheLayout) throws(CacheError) {
        let opened = open(layout.lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard opened >= 0 else {
            throw .fileSystem(SystemCallError(call: "open", path: layout.lock, errno: errno))
        }
        if let reason = Self.lock(opened) {
            let holder = Self.holder(opened)
            close(opened)
            guard reason == EWOULDBLOCK else {
                throw .fileSystem(SystemCallError(call: "flock", path: layout.lock, errno: reason))
            }
            throw .stateLocked(directory: layout.stateDirectory, holder: holder)
        }
        descriptor = opened
        // For people and for the error above only; the lock is the descriptor's.
        let text = Array("\(getpid())\n".utf8)
        if fchmod(opened, 0o600) == 0, ftruncate(opened, 0) == 0 { _ = pwrite(opened, text, text.count, 0) }
    }

    deinit { close(descriptor) }

    /// How often, and how many milliseconds apart, a lock that somebody has is asked for again: whoever was just killed
    /// or closed it may have a child between vfork and execve, which shares the descriptor for an instant.
    private static let attempts = 20
    private static let pause: Int32 = 10

    /// Returns why it could not be had.
    private static func lock(_ descriptor: Int32) -> Int32? {
        for attempt in 1...attempts {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return nil }
            let reason = errno
            if reason != EWOULDBLOCK && reason != EINTR || attempt == attempts { return reason }
            poll(nil, 0, pause)
        }
        return EWOULDBLOCK
    }

    private static func holder(_ descriptor: Int32) -> Int32? {
        var buffer = [UInt8](repeating: 0, count: 16)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        return Int32(String(decoding: buffer[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}
