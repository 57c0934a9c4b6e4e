import FreshetModel
import Synchronization

/// The file of a candidate. It ends with ``finish(_:)`` or ``discard()``; if the object is released before, it discards
/// the candidate, and the next start removes the candidates of a killed process.
///
/// All methods block. They may be called from any thread; concurrent calls run one after another.
final class CandidateFile: Sendable {
    private let context: CacheContext
    private let space: CacheSpace
    let destination: CacheDestination
    let spaceRequest: SpaceRequest
    let token: UInt64
    let path: String
    private let writer: Mutex<CandidateWriter?>

    init(
        context: CacheContext, space: CacheSpace, destination: CacheDestination, spaceRequest: SpaceRequest,
        token: UInt64, path: String, writer: consuming CandidateWriter
    ) {
        self.context = context
        self.space = space
        self.destination = destination
        self.spaceRequest = spaceRequest
        self.token = token
        self.path = path
        self.writer = Mutex(writer)
    }

    deinit {
        discard()
        // Released last: after this, a remaining file is a leftover.
        context.names.release(token)
    }

    /// Appends bytes and updates the digest. After an error the candidate is discarded.
    ///
    /// - Throws: ``CacheError/tooLarge(maximum:)`` as soon as the limit is exceeded.
    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        do throws(CacheError) {
            try writer.withLock { (writer) throws(CacheError) in
                guard writer != nil else { throw .finished }
                try writer?.append(bytes, self)
            }
        } catch {
            discard()
            throw error
        }
    }

    /// Appends, hashing on the way. After an error the candidate is discarded.
    func write(_ bytes: [UInt8]) throws(CacheError) {
        // withUnsafeBytes does not pass typed errors through.
        let result = bytes.withUnsafeBytes { buffer in
            Result { () throws(CacheError) in try write(buffer) }
        }
        try result.get()
    }

    /// The bytes written so far; nil after the end.
    var size: Int64? {
        writer.withLock { writer in
            switch writer {
            case .some(let open): open.size
            case nil: nil
            }
        }
    }

    /// The digest of the bytes written so far; nil after the end.
    func digest() throws(CacheError) -> ContentDigest? {
        try writer.withLock { (writer) throws(CacheError) in
            switch writer {
            case .some(let open): try open.digest()
            case nil: nil
            }
        }
    }

    /// Reads the written content, in pieces.
    func read(_ piece: (UnsafeRawBufferPointer) -> Void) throws(CacheError) {
        let isThere = try context.fileSystem.readFile(path) { (bytes) throws(CacheError) in piece(bytes) }
        guard isThere else { throw .finished }
    }

    /// Whether the file has exactly the written content: a program that knows its name could have written to it too.
    func isIntact() throws(CacheError) -> Bool {
        guard let digest = try digest() else { throw .finished }
        return try context.fileSystem.digest(of: path) == digest
    }

    /// Ends the writing and passes the candidate to `body`. Afterwards its name is removed; if the removal fails, the
    /// next start removes it.
    func finish<Value>(_ body: (Candidate) throws(CacheError) -> Value) throws(CacheError) -> Value {
        // The writer is taken out: a second call finds the candidate finished.
        guard let taken = writer.withLock({ $0.take() }) else { throw .finished }
        let (descriptor, size) = (taken.descriptor, taken.size)
        // After success or failure it is no longer a candidate.
        defer {
            context.fileSystem.close(descriptor)
            context.names.setSize(token, 0)
        }
        do throws(CacheError) {
            let digest = try taken.finalize()
            return try body(
                Candidate(descriptor: descriptor, path: path, token: token, digest: digest, size: size))
        } catch {
            try? context.fileSystem.unlink(path)
            throw error
        }
    }

    /// Ends the candidate and removes its file. A second call does nothing.
    func discard() {
        guard let taken = writer.withLock({ $0.take() }) else { return }
        context.fileSystem.close(taken.descriptor)
        // If this fails, the next start removes the file.
        try? context.fileSystem.unlink(path)
        context.names.setSize(token, 0)
    }

    fileprivate func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(CacheError) {
        try context.onFiles { (files) throws(SystemCallError) in try files.write(bytes, to: descriptor, path: path) }
    }

    fileprivate func freeSpace(for size: Int64) throws(CacheError) { try space.free(for: size, spaceRequest) }

    fileprivate func setSize(_ size: Int64) { context.names.setSize(token, size) }
}

/// Writes a candidate.
struct CandidateWriter: ~Copyable, Sendable {
    let descriptor: Int32
    private var hasher: SHA256Hasher
    private(set) var size: Int64 = 0
    /// The number of bytes between two checks of the free space.
    static let stride: Int64 = 16 << 20
    private var checkedAt: Int64 = 0

    init(descriptor: Int32, hasher: consuming SHA256Hasher) {
        self.descriptor = descriptor
        self.hasher = hasher
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer, _ file: CandidateFile) throws(CacheError) {
        guard Int64(bytes.count) <= file.destination.maximumBytes - size else {
            throw .tooLarge(maximum: file.destination.maximumBytes)
        }
        if size - checkedAt >= Self.stride {
            try file.freeSpace(for: size)
            checkedAt = size
        }
        try file.write(bytes, to: descriptor)
        hasher.update(bytes)
        size += Int64(bytes.count)
        file.setSize(size)
    }

    func digest() throws(CacheError) -> ContentDigest { try hasher.digest() }

    consuming func finalize() throws(CacheError) -> ContentDigest { try hasher.finalize() }
}

/// A completely written candidate.
struct Candidate: Sendable {
    var descriptor: Int32
    var path: String
    var token: UInt64
    var digest: ContentDigest
    var size: Int64
    var truncated = false
    var contentExpires: WallTime?
    var isCheck = true
}
