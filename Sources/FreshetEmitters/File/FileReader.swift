import FreshetEventLoop
import FreshetPipelines
import Glibc
import Synchronization

/// Reads local files whose content is data, on threads of a ``PathPool``, since a file system may take its time or hang.
///
/// Only regular files: a FIFO, a device or a directory is refused without being waited for.
package struct FileReader: Sendable {
    /// Bytes between two looks at whether the reader was cancelled.
    static let chunk = 1 << 20
    /// How often a file is read again because it changed meanwhile.
    static let attempts = 3

    private let paths: PathPool
    /// Closes files that are left half read: a close may hang, too.
    private let closers = WorkerPool(threads: 1)

    package init(paths: PathPool) {
        self.paths = paths
    }

    /// Whether there is such a file.
    func isThere(_ path: String, for caller: PathPool.Caller = PathPool.Caller()) async throws(FetchError) -> Bool {
        try await paths.run(path, for: caller) { () throws(FetchError) in access(path, F_OK) == 0 }
    }

    /// Reads a file whole, or finds that it has not changed. What is longer than a ``chunk`` goes to the keeper, if there is
    /// one.
    ///
    /// A file's entity tag is made of device, inode, size and times: whatever replaces or rewrites it gives another.
    /// Files that do not say their size, as those of procfs and sysfs, have none and are always read; and so are empty
    /// ones, which cannot be told from them.
    ///
    /// - Parameters:
    ///   - saysSize: it does, also if it is empty.
    ///   - progress: called with the bytes so far, not on the caller's thread.
    func read(
        _ path: String, saysSize: Bool = false, validators: Validators?, maxBytes: UInt64,
        keeper: (any BodyStoring)? = nil, caller: PathPool.Caller = PathPool.Caller(),
        progress: @escaping @Sendable (UInt64) -> Void
    ) async throws(FetchError) -> FetchResult {
        guard !Task.isCancelled else { throw .cancelled }
        let job = FileJob(
            path: path, caller: caller, saysSize: saysSize, known: validators?.entityTag, maxBytes: maxBytes,
            longest: keeper == nil ? UInt64.max : UInt64(Self.chunk), progress: progress)
        let result: Result<FetchResult, FetchError> = await withTaskCancellationHandler {
            do throws(FetchError) {
                return .success(try await read(job, keeper))
            } catch {
                return .failure(error)
            }
        } onCancel: {
            job.isCancelled.store(true, ordering: .relaxed)
        }
        return try result.get()
    }

    private func read(_ job: FileJob, _ keeper: (any BodyStoring)?) async throws(FetchError) -> FetchResult {
        for _ in 0..<Self.attempts {
            let reading = try await paths.run(job.path, for: job.caller) { () throws(FetchError) in
                try job.readOnce()
            }
            switch reading {
            case .result(let result):
                return result
            case .changed:
                continue
            case .long(let file):
                guard let keeper else { continue }
                defer { closers.perform("close") { file.close() } }
                if let content = try await keep(file, job, keeper) { return .content(content) }
            }
        }
        throw .failed(RunFailure(.local, "\(job.name) changes while it is read; replace it by rename"))
    }

    /// Returns nil if the file changed while it was read.
    private func keep(
        _ file: FileJob.OpenFile, _ job: FileJob, _ keeper: any BodyStoring
    ) async throws(FetchError) -> FetchedContent? {
        let body: any PendingBody
        do throws(RunFailure) {
            body = try await keeper.begin(expecting: file.size)
        } catch {
            throw .failed(error)
        }
        do throws(FetchError) {
            var size = 0
            while size < file.size {
                let piece = try await paths.run(job.path, for: job.caller) { [size] () throws(FetchError) in
                    try job.piece(of: file, after: size)
                }
                guard !piece.isEmpty else { break }
                size += piece.count
                do throws(RunFailure) {
                    try await body.append(piece)
                } catch {
                    throw .failed(error)
                }
            }
            let isUnchanged = try await paths.run(job.path, for: job.caller) { () throws(FetchError) in
                job.isUnchanged(file)
            }
            if isUnchanged, size == file.size {
                return FetchedContent(
                    .kept(StoredBody(body, size: size)), validators: Validators(entityTag: file.entityTag))
            }
        } catch {
            await body.discard()
            throw error
        }
        await body.discard()
        return nil
    }
}

/// One file being read on workers.
private final class FileJob: Sendable {
    /// What came of opening a file and looking at it.
    enum Reading: Sendable {
        case result(FetchResult)
        /// It changed while it was read.
        case changed
        /// It is there, and long.
        case long(OpenFile)
    }

    final class OpenFile: Sendable {
        let size: UInt64
        let entityTag: String
        private let held: Mutex<OwnedDescriptor?>

        init(_ descriptor: OwnedDescriptor, size: UInt64, entityTag: String) {
            held = Mutex(descriptor)
            self.size = size
            self.entityTag = entityTag
        }

        /// Nil once it is closed.
        var descriptor: OwnedDescriptor? { held.withLock { $0 } }

        /// Closes the file here, or where a read of it ends that goes on: a close may hang as a read does.
        func close() { held.withLock { $0 = nil } }
    }

    let isCancelled = Atomic(false)
    let path: String
    let caller: PathPool.Caller
    private let saysSize: Bool
    private let known: String?
    private let maxBytes: UInt64
    /// The most bytes that are read at once.
    private let longest: UInt64
    private let progress: @Sendable (UInt64) -> Void

    init(
        path: String, caller: PathPool.Caller, saysSize: Bool, known: String?, maxBytes: UInt64, longest: UInt64,
        progress: @escaping @Sendable (UInt64) -> Void
    ) {
        self.path = path
        self.caller = caller
        self.saysSize = saysSize
        self.known = known
        self.maxBytes = maxBytes
        self.longest = longest
        self.progress = progress
    }

    var name: String { Text.escaped(path) }

    func readOnce() throws(FetchError) -> Reading {
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
        let isSized = saysSize || before.st_size > 0
        if isSized, let known, known == tag {
            return .result(.notModified(Validators(entityTag: tag)))
        }
        let size = UInt64(before.st_size)
        guard size <= maxBytes else {
            throw .failed(SizeLimit.exceeded(by: name, announcing: size, limit: maxBytes))
        }
        let open = OpenFile(file, size: size, entityTag: tag)
        guard size <= longest else { return .long(open) }
        let bytes = try readAll(file, expecting: Int(size))
        guard isUnchanged(open) else { return .changed }
        return .result(
            .content(
                FetchedContent(
                    bytes: bytes,
                    validators: Validators(entityTag: bytes.count == before.st_size && isSized ? tag : nil))))
    }

    func isUnchanged(_ file: OpenFile) -> Bool {
        guard let descriptor = file.descriptor, let after = try? Self.status(of: descriptor) else { return false }
        return Self.entityTag(after) == file.entityTag
    }

    /// The next piece of a long file; empty at its end. More than the file had when it was opened is not read: it is
    /// another one by then.
    func piece(of file: OpenFile, after count: Int) throws(FetchError) -> [UInt8] {
        guard !isCancelled.load(ordering: .relaxed), let descriptor = file.descriptor else { throw .cancelled }
        let room = min(FileReader.chunk, Int(file.size) - count)
        var reason: Int32 = 0
        let piece = [UInt8](unsafeUninitializedCapacity: room) { buffer, size in
            let count = Self.read(descriptor, into: UnsafeMutableRawBufferPointer(buffer))
            if count < 0 { reason = errno }
            size = max(0, count)
        }
        guard reason == 0 else { throw unreadable(reason) }
        progress(UInt64(count + piece.count))
        return piece
    }

    private func unreadable(_ reason: Int32) -> FetchError {
        let error = SystemCallError("read", errno: reason, subject: path)
        return .failed(RunFailure(.local, "could not read \(name): \(error.reason)"))
    }

    private func readAll(_ file: OwnedDescriptor, expecting size: Int) throws(FetchError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size + 1)
        while true {
            guard !isCancelled.load(ordering: .relaxed) else { throw .cancelled }
            // One byte more than expected, so that the end shows without another round.
            let room = max(1, min(FileReader.chunk, max(size + 1 - bytes.count, 4_096)))
            let count = withUnsafeTemporaryAllocation(byteCount: room, alignment: 16) { buffer in
                let count = Self.read(file, into: buffer)
                if count > 0 { bytes.append(contentsOf: buffer[..<count]) }
                return count
            }
            guard count >= 0 else { throw unreadable(errno) }
            guard count > 0 else { return bytes }
            guard UInt64(bytes.count) <= maxBytes else {
                throw .failed(SizeLimit.exceeded(by: name, limit: maxBytes))
            }
            progress(UInt64(bytes.count))
        }
    }

    /// As read(2), but not to be interrupted.
    private static func read(_ file: OwnedDescriptor, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = Glibc.read(file.rawValue, buffer.baseAddress, buffer.count)
            if count >= 0 || errno != EINTR { return count }
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
