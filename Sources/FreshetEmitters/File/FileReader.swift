import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc
import Synchronization

/// Reads local files whose content is data, on threads of a ``PathPool``, because a file system may be slow or hang.
///
/// Only regular files are read: a FIFO, a device or a directory fails immediately.
package struct FileReader: Sendable {
    /// The number of bytes between two checks for cancellation.
    static let chunk = 1 << 20
    /// The number of attempts to read a file that changes while it is read.
    static let attempts = 3

    private let paths: PathPool
    private let own: PrivateDirectories
    /// Whether links of users other than the owners of the files are refused. It is false if only the daemon makes the
    /// links.
    private let checksLinks: Bool
    /// Closes files that were not read completely, because a close may hang, too.
    private let closers = WorkerPool(threads: 1)

    /// - Parameters:
    ///   - own: directories whose files are not read.
    ///   - checksLinks: whether links that lead to a file of another user are refused (``FileWalk``).
    package init(paths: PathPool, own: PrivateDirectories = PrivateDirectories(), checksLinks: Bool = true) {
        self.paths = paths
        self.own = own
        self.checksLinks = checksLinks
    }

    /// A reader of copies that uses the same threads. It does not check links, because only the daemon makes links to
    /// copies.
    var forCopies: FileReader { FileReader(paths: paths, checksLinks: false) }

    /// Whether a file exists at the path.
    func exists(_ path: String, for caller: PathPool.Caller = PathPool.Caller()) async throws(FetchError) -> Bool {
        try await paths.run(path, for: caller) { () throws(FetchError) in access(path, F_OK) == 0 }
    }

    /// Reads a whole file, or finds that the file has not changed. A file that is longer than a ``chunk`` is written to
    /// `bodyStore`, if it is not nil.
    ///
    /// A file's entity tag consists of device, inode, size and times, so it changes when the file is replaced or
    /// rewritten. Files that do not report their size, such as those of procfs and sysfs, have no entity tag and are
    /// always read. Empty files are always read too, because they cannot be distinguished from such files.
    ///
    /// - Parameters:
    ///   - reportsSize: whether the file reports its size, so that an empty file has an entity tag.
    ///   - progress: called with the number of bytes so far, not on the caller's thread.
    func read(
        _ path: String, reportsSize: Bool = false, validators: Validators?, maxBytes: UInt64,
        bodyStore: (any BodyStoring)? = nil, caller: PathPool.Caller = PathPool.Caller(),
        progress: @escaping @Sendable (UInt64) -> Void
    ) async throws(FetchError) -> FetchResult {
        guard !Task.isCancelled else { throw .cancelled }
        let job = FileJob(
            path: path, caller: caller, reportsSize: reportsSize, known: validators?.entityTag, maxBytes: maxBytes,
            longest: bodyStore == nil ? UInt64.max : UInt64(Self.chunk), own: checksLinks ? own : nil,
            progress: progress)
        let result: Result<FetchResult, FetchError> = await withTaskCancellationHandler {
            do throws(FetchError) {
                return .success(try await read(job, bodyStore))
            } catch {
                return .failure(error)
            }
        } onCancel: {
            job.isCancelled.store(true, ordering: .relaxed)
        }
        return try result.get()
    }

    private func read(_ job: FileJob, _ bodyStore: (any BodyStoring)?) async throws(FetchError) -> FetchResult {
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
                guard let bodyStore else { continue }
                defer { closers.perform("close") { file.close() } }
                if let content = try await keep(file, job, bodyStore) { return .content(content) }
            }
        }
        throw .failed(RunFailure(.local, "\(job.name) changed while it was read; replace it by renaming a new file"))
    }

    /// Returns nil if the file changed while it was read.
    private func keep(
        _ file: FileJob.OpenFile, _ job: FileJob, _ bodyStore: any BodyStoring
    ) async throws(FetchError) -> FetchedContent? {
        let body: any PendingBody
        do throws(RunFailure) {
            body = try await bodyStore.begin(expecting: file.size)
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
    /// The result of opening a file and reading it if it is short.
    enum Reading: Sendable {
        case result(FetchResult)
        /// The file changed while it was read.
        case changed
        /// The file is long and has only been opened.
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

        /// Nil after ``close()``.
        var descriptor: OwnedDescriptor? { held.withLock { $0 } }

        /// Closes the file: on this thread, or on the thread of a read in progress when that read ends. A close may
        /// hang as a read does.
        func close() { held.withLock { $0 = nil } }
    }

    let isCancelled = Atomic(false)
    let path: String
    let caller: PathPool.Caller
    private let reportsSize: Bool
    private let known: String?
    private let maxBytes: UInt64
    /// The most bytes of a file that is read into memory.
    private let longest: UInt64
    /// Directories whose files are not read; nil if neither these nor links are checked.
    private let own: PrivateDirectories?
    private let progress: @Sendable (UInt64) -> Void

    init(
        path: String, caller: PathPool.Caller, reportsSize: Bool, known: String?, maxBytes: UInt64, longest: UInt64,
        own: PrivateDirectories?, progress: @escaping @Sendable (UInt64) -> Void
    ) {
        self.path = path
        self.caller = caller
        self.reportsSize = reportsSize
        self.known = known
        self.maxBytes = maxBytes
        self.longest = longest
        self.own = own
        self.progress = progress
    }

    var name: String { Text.escaped(path) }

    func readOnce() throws(FetchError) -> Reading {
        let file: OwnedDescriptor
        let before: stat
        do throws(SystemCallError) {
            // Non-blocking, because opening a FIFO would wait for its writer. O_NOCTTY, because a terminal must not
            // become the daemon's controlling terminal.
            file = try OwnedDescriptor(
                open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY), of: "open", subject: path)
            before = try FileWalk.status(of: file)
        } catch {
            throw .failed(RunFailure(.local, "could not open \(name): \(error.reason)"))
        }
        guard before.st_mode & S_IFMT == S_IFREG else {
            throw .failed(RunFailure(.local, "\(name) is \(Self.kind(before.st_mode)), not a regular file"))
        }
        if let own {
            guard try isAtPath(file, before, own) else { return .changed }
        }
        let tag = Self.entityTag(before)
        let isSized = reportsSize || before.st_size > 0
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

    /// Whether the path leads to the file that was opened.
    ///
    /// - Throws: why the file is not read: a link that must not be followed, or a private directory of the daemon.
    private func isAtPath(
        _ file: OwnedDescriptor, _ status: stat, _ own: PrivateDirectories
    ) throws(FetchError) -> Bool {
        let walk: FileWalk
        let directory: String?
        do throws(SystemCallError) {
            walk = try FileWalk(path)
            guard FileWalk.isSame(walk.status, status) else { return false }
            directory = try own.forbidding(status, in: walk.directory)
        } catch {
            switch error.errno {
            case ENOENT, ENOTDIR, ELOOP, EACCES: return false  // the path has changed since the file was opened
            default: throw .failed(RunFailure(.local, "could not open \(name): \(error.reason)"))
            }
        }
        let place = Text.escaped(FileWalk.location(of: file) ?? "another file")
        if let directory {
            throw .failed(
                RunFailure(
                    .local,
                    "\(name) is not read: it is \(place), in \(Text.escaped(directory)), which is a private "
                        + "directory of Freshet"))
        }
        if let link = walk.forbiddenLink {
            throw .failed(
                RunFailure(
                    .local,
                    "\(name) is not read: the link \(Text.escaped(link.path)) of user \(link.owner) leads to "
                        + "\(place) of user \(status.st_uid); use \(place) as source.file, or let root make the link"))
        }
        return true
    }

    func isUnchanged(_ file: OpenFile) -> Bool {
        guard let descriptor = file.descriptor, let after = try? FileWalk.status(of: descriptor) else { return false }
        return Self.entityTag(after) == file.entityTag
    }

    /// The next piece of a long file; empty at its end. Bytes beyond the size at opening are not read: the file has
    /// changed then.
    func piece(of file: OpenFile, after count: Int) throws(FetchError) -> [UInt8] {
        guard !isCancelled.load(ordering: .relaxed), let descriptor = file.descriptor else { throw .cancelled }
        let capacity = min(FileReader.chunk, Int(file.size) - count)
        var reason: Int32 = 0
        let piece = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, size in
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
            // One byte more than expected, so that the end is found without another read.
            let capacity = max(1, min(FileReader.chunk, max(size + 1 - bytes.count, 4_096)))
            let count = withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 16) { buffer in
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

    /// Calls read(2), and repeats it if a signal interrupts it.
    private static func read(_ file: OwnedDescriptor, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = Glibc.read(file.rawValue, buffer.baseAddress, buffer.count)
            if count >= 0 || errno != EINTR { return count }
        }
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
