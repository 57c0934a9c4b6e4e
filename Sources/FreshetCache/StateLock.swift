import Glibc

/// The lock of a state directory. It is held as long as this value lives, and child processes do not inherit it.
///
/// `flock` is used instead of `fcntl`, because a record lock is lost as soon as any descriptor of the file is closed in
/// this process.
///
/// There are two locks: that of the directory, which cannot be replaced while it is in use, and that of the file
/// `lock`, which has the process ID of the holder. So an object in the place of the file can be moved aside safely: the
/// holder of the lock also holds the lock of the directory.
struct StateLock: ~Copyable, Sendable {
    private let directory: Int32
    private let file: Int32
    /// The object that was in the place of the file.
    let stray: StateStray?

    /// Takes the lock; if another process has it, throws an error that names that process.
    init(_ layout: CacheLayout) throws(CacheError) {
        let directory = open(layout.stateDirectory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else {
            throw .fileSystem(SystemCallError(call: "open", path: layout.stateDirectory, errno: errno))
        }
        let (file, stray): (Int32, StateStray?)
        do throws(CacheError) {
            // On a file system that cannot lock directories (NFS), only the lock of the file is used.
            if let reason = Self.lock(directory), reason == EWOULDBLOCK {
                throw CacheError.stateLocked(directory: layout.stateDirectory, holder: Self.holder(layout.lock))
            }
            stray = try StateStray.moveAside(layout.lock, unless: .file)
            file = try Self.lockFile(layout)
        } catch {
            close(directory)
            throw error
        }
        (self.directory, self.file, self.stray) = (directory, file, stray)
    }

    deinit {
        close(file)
        close(directory)
    }

    private static func lockFile(_ layout: CacheLayout) throws(CacheError) -> Int32 {
        let opened = open(layout.lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard opened >= 0 else {
            throw .fileSystem(SystemCallError(call: "open", path: layout.lock, errno: errno))
        }
        if let reason = lock(opened) {
            let holder = holder(opened)
            close(opened)
            guard reason == EWOULDBLOCK else {
                throw .fileSystem(SystemCallError(call: "flock", path: layout.lock, errno: reason))
            }
            throw .stateLocked(directory: layout.stateDirectory, holder: holder)
        }
        // The process ID is only for people and for the error above; the descriptor holds the lock.
        let text = Array("\(getpid())\n".utf8)
        if fchmod(opened, 0o600) == 0, ftruncate(opened, 0) == 0 { _ = pwrite(opened, text, text.count, 0) }
        return opened
    }

    /// The number of attempts to take a lock that is held, and the pause between them in milliseconds: a process that
    /// was just killed, or just closed the lock, may have a child between vfork and execve that shares the descriptor
    /// for an instant.
    private static let attempts = 100
    private static let pause: Int32 = 10

    /// Returns the error number if the lock could not be taken.
    private static func lock(_ descriptor: Int32) -> Int32? {
        for attempt in 1...attempts {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return nil }
            let reason = errno
            if reason != EWOULDBLOCK && reason != EINTR || attempt == attempts { return reason }
            poll(nil, 0, pause)
        }
        return EWOULDBLOCK
    }

    private static func holder(_ path: String) -> Int32? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return holder(descriptor)
    }

    private static func holder(_ descriptor: Int32) -> Int32? {
        var buffer = [UInt8](repeating: 0, count: 16)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        return Int32(String(decoding: buffer[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}
