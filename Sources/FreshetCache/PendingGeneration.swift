import Synchronization

/// A candidate that is being written aside. It ends by `commit` or `discard`; if it is dropped it discards itself, and
/// what a killed process left is removed at the next start.
///
/// All methods block. They may be called from any thread, one call at a time taking effect.
package final class PendingGeneration: Sendable {
    let cache: LocalCache
    let destination: CacheDestination
    let asker: SpaceRequest
    let token: UInt64
    let path: String
    private let writer: Mutex<CandidateWriter?>

    init(
        cache: LocalCache, destination: CacheDestination, asker: SpaceRequest, token: UInt64, path: String,
        writer: consuming CandidateWriter
    ) {
        self.cache = cache
        self.destination = destination
        self.asker = asker
        self.token = token
        self.path = path
        self.writer = Mutex(writer)
    }

    deinit {
        discard()
        // Only now: what is left of it after that is nobody's.
        cache.release(token)
    }

    /// Appends, hashing on the way. After an error the candidate is discarded.
    ///
    /// - Throws: ``CacheError/tooLarge(maximum:)`` as soon as the limit is passed.
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

    /// Bytes written so far; nil once it has ended.
    package var size: Int64? {
        writer.withLock { writer in
            switch writer {
            case .some(let open): open.size
            case nil: nil
            }
        }
    }

    /// The digest of what was written so far; nil once it has ended.
    package func digest() throws(CacheError) -> ContentDigest? {
        try writer.withLock { (writer) throws(CacheError) in
            switch writer {
            case .some(let open): try open.digest()
            case nil: nil
            }
        }
    }

    /// Where it is written. Others may read it as long as it has not ended.
    package var file: String { path }

    /// Reads what was written, in pieces.
    package func read(_ piece: (UnsafeRawBufferPointer) -> Void) throws(CacheError) {
        let isThere = try cache.fileSystem.readFile(path) { (bytes) throws(CacheError) in piece(bytes) }
        guard isThere else { throw .finished }
    }

    /// Whether the file has what was written, and nothing else: whoever is given its name could have written to it too.
    package func isIntact() throws(CacheError) -> Bool {
        guard let digest = try digest() else { throw .finished }
        return try cache.fileSystem.digest(of: path) == digest
    }

    /// Makes the candidate the current generation, or finds that it is the current one already.
    ///
    /// Whatever happens, the candidate has ended afterwards, and readers see a whole generation: if it throws, the one
    /// from before, or (if the failure came after the rename) the new one, and then the index says so too.
    ///
    /// - Parameters:
    ///   - validators: what the origin said about the pages that went into the content.
    ///   - truncated: the source had more than was asked for.
    ///   - isCheck: the source was asked for all of it; else when the last check was, and what came of it, stays.
    ///   - run: the run's number.
    ///   - now: the time of the check.
    ///   - expires: when the content stops being fresh by its origin's word; nil: not known.
    ///   - contentExpires: when the content expires by what the content itself states; nil: it states nothing.
    package func commit(
        validators: [Validators] = [], truncated: Bool = false, isCheck: Bool = true, run: Int64? = nil,
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

    /// Ends the writing and hands the candidate over. Afterwards its name is gone, or is left to the next start if the
    /// system refuses even that.
    func finish<Value>(_ body: (Candidate) throws(CacheError) -> Value) throws(CacheError) -> Value {
        // The writer is taken out: who comes second finds it finished.
        guard let taken = writer.withLock({ $0.take() }) else { throw .finished }
        let (descriptor, size) = (taken.descriptor, taken.size)
        // Whatever comes of it, it is a candidate no more.
        defer {
            cache.fileSystem.close(descriptor)
            cache.weigh(token, 0)
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

    /// Ends the candidate without a trace. A second call does nothing.
    package func discard() {
        guard let taken = writer.withLock({ $0.take() }) else { return }
        cache.fileSystem.close(taken.descriptor)
        // What cannot be removed now is removed at the next start.
        try? cache.fileSystem.unlink(path)
        cache.weigh(token, 0)
    }
}

/// The open end of a candidate.
struct CandidateWriter: ~Copyable, Sendable {
    let descriptor: Int32
    private var hasher: SHA256Hasher
    private(set) var size: Int64 = 0
    /// So many bytes are written between two looks at the room that is left.
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
            try pending.cache.makeRoom(for: size, pending.asker)
            checkedAt = size
        }
        do throws(SystemCallError) {
            try pending.cache.fileSystem.write(bytes, to: descriptor, path: pending.path)
        } catch {
            throw pending.cache.refusal(error)
        }
        hasher.update(bytes)
        size += Int64(bytes.count)
        pending.cache.weigh(pending.token, size)
    }

    func digest() throws(CacheError) -> ContentDigest { try hasher.digest() }

    consuming func finalize() throws(CacheError) -> ContentDigest { try hasher.finalize() }
}

/// A candidate whose bytes are all there.
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
