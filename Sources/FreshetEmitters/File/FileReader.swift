package import FreshetEventLoop
import FreshetPipelines
import Glibc
import Synchronization

/// Reads local files whose content is data, on a worker, since a disk may take its time.
///
/// Only regular files: a FIFO, a device or a directory is refused without being waited for.
package struct FileReader: Sendable {
    /// Bytes between two looks at whether the reader was cancelled.
    static let chunk = 1 << 20
    /// How often a file is read again because it changed meanwhile.
    static let attempts = 3

    let workers: WorkerPool

    package init(workers: WorkerPool) {
        self.workers = workers
    }

    /// Reads a file whole, or finds that it has not changed.
    ///
    /// A file's entity tag is made of device, inode, size and times: whatever replaces or rewrites it gives another.
    /// Files that do not say their size, as those of procfs and sysfs, have none and are always read.
    ///
    /// - Parameter progress: called on a worker's thread with the bytes so far.
    func read(
        _ path: String, validators: Validators?, maxBytes: UInt64, progress: @escaping @Sendable (UInt64) -> Void
    ) async throws(FetchError) -> FetchResult {
        guard !Task.isCancelled else { throw .cancelled }
        let job = FileJob(path: path, known: validators?.entityTag, maxBytes: maxBytes, progress: progress)
        let result: Result<FetchResult, FetchError> = await withTaskCancellationHandler {
            await workers.run { job.run() }
        } onCancel: {
            job.isCancelled.store(true, ordering: .relaxed)
        }
        return try result.get()
    }
}

/// One file being read on a worker.
private final class FileJob: Sendable {
    let isCancelled = Atomic(false)
    private let path: String
    private let known: String?
    private let maxBytes: UInt64
    private let progress: @Sendable (UInt64) -> Void

    init(path: String, known: String?, maxBytes: UInt64, progress: @escaping @Sendable (UInt64) -> Void) {
        self.path = path
        self.known = known
        self.maxBytes = maxBytes
        self.progress = progress
    }

    private var name: String { Text.escaped(path) }

    func run() -> Result<FetchResult, FetchError> {
        do throws(FetchError) {
            for _ in 0..<FileReader.attempts {
                if let result = try readOnce() { return .success(result) }
            }
            throw .failed(RunFailure(.local, "\(name) changes while it is read; replace it by rename"))
        } catch {
            return .failure(error)
        }
    }

    /// Returns nil if the file changed while it was read.
    private func readOnce() throws(FetchError) -> FetchResult? {
        let file: OwnedDescriptor
        let before: stat
        do throws(SystemCallError) {
            // Non-blocking: opening a FIFO would wait for its writer. A terminal must not become ours.
            file = try OwnedDescriptor(
                open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY), of: "open", subject: path)
            before = try Self.status(of: file)
        } catch {
            throw .failed(RunFailure(.local, "could not open \(name): \(error.reason)"))
        }
        guard before.st_mode & S_IFMT == S_IFREG else {
            throw .failed(RunFailure(.local, "\(name) is \(Self.kind(before.st_mode)), not a regular file"))
        }
        let tag = Self.entityTag(before)
        if before.st_size > 0, let known, known == tag { return .notModified(Validators(entityTag: tag)) }
        let size = UInt64(before.st_size)
        guard size <= maxBytes else {
            throw .failed(SizeLimit.exceeded(by: name, announcing: size, limit: maxBytes))
        }
        let bytes = try readAll(file, expecting: Int(size))
        guard let after = try? Self.status(of: file), Self.entityTag(after) == tag else { return nil }
        return .content(
            FetchedContent(
                bytes: bytes,
                validators: Validators(entityTag: bytes.count == before.st_size && size > 0 ? tag : nil)))
    }

    private func readAll(_ file: OwnedDescriptor, expecting size: Int) throws(FetchError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size + 1)
        while true {
            guard !isCancelled.load(ordering: .relaxed) else { throw .cancelled }
            // One byte more than expected, so that the end shows without another round.
            let room = max(1, min(FileReader.chunk, max(size + 1 - bytes.count, 4_096)))
            let count = withUnsafeTemporaryAllocation(byteCount: room, alignment: 16) { buffer in
                let count = Glibc.read(file.rawValue, buffer.baseAddress, buffer.count)
                if count > 0 { bytes.append(contentsOf: buffer[..<count]) }
                return count
            }
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else {
                let error = SystemCallError("read", errno: errno, subject: path)
                throw .failed(RunFailure(.local, "could not read \(name): \(error.reason)"))
            }
            guard count > 0 else { return bytes }
            guard UInt64(bytes.count) <= maxBytes else {
                throw .failed(SizeLimit.exceeded(by: name, limit: maxBytes))
            }
            progress(UInt64(bytes.count))
        }
    }

    private static func status(of file: OwnedDescriptor) throws(SystemCallError) -> stat {
        var status = stat()
        guard fstat(file.rawValue, &status) == 0 else { throw SystemCallError("fstat", errno: errno) }
        return status
    }

    private static func entityTag(_ status: stat) -> String {
        let parts = [
            Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino), status.st_size,
            status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
        ]
        return "\"" + parts.map { String(UInt(bitPattern: $0), radix: 16) }.joined(separator: "-") + "\""
    }

    private static func kind(_ mode: mode_t) -> String {
        switch mode & S_IFMT {
        case S_IFDIR: "a directory"
        case S_IFIFO: "a FIFO"
        case S_IFCHR, S_IFBLK: "a device"
        case S_IFSOCK: "a socket"
        default: "something else"
        }
    }
}
