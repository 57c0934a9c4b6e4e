package import FreshetModel
import Synchronization

/// A candidate that is being written. It ends with `commit` or `discard`; if the object is released before, it discards
/// the candidate, and the next start removes the candidates of a killed process.
///
/// All methods block. They may be called from any thread; concurrent calls run one after another.
package final class PendingGeneration: Sendable {
    let cache: LocalCache
    let destination: CacheDestination
    let spaceRequest: SpaceRequest
    let token: UInt64
    let path: String
    private let writer: Mutex<CandidateWriter?>

    init(
        cache: LocalCache, destination: CacheDestination, spaceRequest: SpaceRequest, token: UInt64, path: String,
        writer: consuming CandidateWriter
    ) {
        self.cache = cache
        self.destination = destination
        self.spaceRequest = spaceRequest
        self.token = token
        self.path = path
        self.writer = Mutex(writer)
    }

    deinit {
        discard()
        // Released last: after this, a remaining file is a leftover.
        cache.release(token)
    }

    /// Appends bytes and updates the digest. After an error the candidate is discarded.
    ///
    /// - Throws: ``CacheError/tooLarge(maximum:)`` as soon as the limit is exceeded.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
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
    package func write(_ bytes: [UInt8]) throws(CacheError) {
        // withUnsafeBytes does not pass typed errors through.
        let result = bytes.withUnsafeBytes { buffer in
            Result { () throws(CacheError) in try write(buffer) }
        }
        try result.get()
    }

    /// The bytes written so far; nil after the end.
    package var size: Int64? {
        writer.withLock { writer in
            switch writer {
            case .some(let open): open.size
            case nil: nil
            }
        }
    }

    /// The digest of the bytes written so far; nil after the end.
    package func digest() throws(CacheError) -> ContentDigest? {
        try writer.withLock { (writer) throws(CacheError) in
            switch writer {
            case .some(let open): try open.digest()
            case nil: nil
            }
        }
    }

    /// The path of the candidate. Other code may read it until the candidate ends.
    package var file: String { path }

    /// Reads the written content, in pieces.
    package func read(_ piece: (UnsafeRawBufferPointer) -> Void) throws(CacheError) {
        let isThere = try cache.fileSystem.readFile(path) { (bytes) throws(CacheError) in piece(bytes) }
        guard isThere else { throw .finished }
    }

    /// Whether the file has exactly the written content: a program that knows its name could have written to it too.
    package func isIntact() throws(CacheError) -> Bool {
        guard let digest = try digest() else { throw .finished }
        return try cache.fileSystem.digest(of: path) == digest
    }

    /// Makes the candidate the current generation, or finds that its content is current already.
    ///
    /// In any case the candidate has ended afterwards, and readers see a complete generation: if this throws, the
    /// previous one or (if the failure came after the rename) the new one; then the index agrees.
    ///
    /// - Parameters:
    ///   - validators: the validators of the pages that make up the content.
    ///   - truncated: the source had more content than was requested.
    ///   - isCheck: whether all of the source was requested; otherwise the time and the result of the last check stay.
    ///   - run: the number of the run.
    ///   - now: the time of the check.
    ///   - expires: when the content stops being fresh, as its origin states; nil: not known.
    ///   - contentExpires: the expiry time that the content itself states; nil: it states none.
    package func commit(
        validators: [BoundValidators] = [], truncated: Bool = false, isCheck: Bool = true, run: Int64? = nil,
        at now: WallTime, expires: WallTime? = nil, contentExpires: WallTime? = nil
    ) throws(CacheError) -> CommitOutcome {
        try finish { (candidate) throws(CacheError) in
            var candidate = candidate
            candidate.truncated = truncated
            candidate.contentExpires = contentExpires
            candidate.isCheck = isCheck
            return try cache.commit(
                candidate, to: destination, validators: validators, run: run, at: now, expires: expires)
        }
    }

    /// Ends the writing and passes the candidate to `body`. Afterwards its name is removed; if the removal fails, the
    /// next start removes it.
    func finish<Value>(_ body: (Candidate) throws(CacheError) -> Value) throws(CacheError) -> Value {
        // The writer is taken out: a second call finds the candidate finished.
        guard let taken = writer.withLock({ $0.take() }) else { throw .finished }
        let (descriptor, size) = (taken.descriptor, taken.size)
        // After success or failure it is no longer a candidate.
        defer {
            cache.fileSystem.close(descriptor)
            cache.setSize(token, 0)
        }
        do throws(CacheError) {
            let digest = try taken.finalize()
            return try body(
                Candidate(descriptor: descriptor, path: path, token: token, digest: digest, size: size))
        } catch {
            try? cache.fileSystem.unlink(path)
            throw error
        }
    }

    /// Ends the candidate and removes its file. A second call does nothing.
    package func discard() {
        guard let taken = writer.withLock({ $0.take() }) else { return }
        cache.fileSystem.close(taken.descriptor)
        // If this fails, the next start removes the file.
        try? cache.fileSystem.unlink(path)
        cache.setSize(token, 0)
    }
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

    mutating func append(_ bytes: UnsafeRawBufferPointer, _ pending: PendingGeneration) throws(CacheError) {
        guard Int64(bytes.count) <= pending.destination.maximumBytes - size else {
            throw .tooLarge(maximum: pending.destination.maximumBytes)
        }
        if size - checkedAt >= Self.stride {
            try pending.cache.freeSpace(for: size, pending.spaceRequest)
            checkedAt = size
        }
        do throws(SystemCallError) {
            try pending.cache.fileSystem.write(bytes, to: descriptor, path: pending.path)
        } catch {
            throw pending.cache.cacheError(error)
        }
        hasher.update(bytes)
        size += Int64(bytes.count)
        pending.cache.setSize(pending.token, size)
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
