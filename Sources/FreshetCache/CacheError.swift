/// Why the cache did not do what it was asked. `description` is one sentence for people, with the remedy.
package enum CacheError: Error, Hashable, Sendable {
    /// A pipeline's or a file's name that cannot be a file's name here.
    case invalidName(String, reason: CacheName.ValidationError)
    /// Two pipelines want the same `cache.file`.
    case fileOwned(file: String, owner: String, claimant: String)
    /// Another process uses the state directory.
    case stateLocked(directory: String, holder: Int32?)
    /// A newer Freshet wrote the index.
    case indexNewer(path: String, found: Int64, known: Int64)
    /// SQLite failed.
    case index(SQLiteError)
    /// The system refused.
    case fileSystem(SystemCallError)
    /// No room: writing it would have used (or has used) what must stay free.
    case noSpace(path: String, available: UInt64, reserve: UInt64)
    /// No room for a candidate of so many bytes.
    case noSpaceFor(bytes: UInt64, path: String, available: UInt64, reserve: UInt64)
    /// All content that may not go, and the candidate of so many bytes, would have more bytes than the cache may have.
    case overLimit(bytes: Int64, kept: Int64, limit: Int64)
    /// The candidate has no content.
    case empty
    /// The candidate is smaller than `check.min-bytes`.
    case tooSmall(bytes: Int64, minimum: Int64)
    /// The candidate is larger than `check.max-bytes`.
    case tooLarge(maximum: Int64)
    /// The writer was committed or discarded before, or gave up after an earlier error.
    case finished
    /// A key or value of the small state is over its limit, or there are too many keys.
    case stateLimit(key: String)
    /// libcrypto offers no SHA-256.
    case digestUnavailable
    /// The pipeline's copy is pinned at this generation.
    case pinned(Int64)
    /// The pinned generation is gone or damaged, and other content does not take its place.
    case pinnedGone(Int64)
    /// The content of this generation is not kept, if it was ever there; nil: there is none before the current one.
    case notKept(Int64?, kept: [Int64])
    /// The file of this generation does not have its content any more.
    case damaged(Int64)
    /// Nothing that a check refused is kept aside.
    case noCandidate
    /// What is kept aside is not what was meant.
    case otherCandidate(ContentDigest)
    /// The file is gone, or has other content than it had.
    case unreadable
    /// The content is not one of several files, which the pipeline is to keep.
    case noBundle(String)
    /// A reload has given the pipeline another file, or had it keep several instead of one, or one instead of several, since
    /// this began.
    case reassigned(String)
    /// There is nothing to pin.
    case nothingOffered
    /// There is no index at this path, and so nothing to be examined.
    case nothingKept(String)
}

extension CacheError: CustomStringConvertible {
    private static let reserveKey = ", or lower cache.min-free in freshet.yaml"

    package var description: String {
        switch self {
        case .invalidName(let name, let reason):
            "\(String(reflecting: name)) cannot be a file's name in the cache: \(reason)"
        case .fileOwned(let file, let owner, let claimant):
            "the pipelines \(owner) and \(claimant) both have the cache file \(file); give one of them another cache.file"
        case .stateLocked(let directory, let holder):
            "the state directory \(directory) is in use by \(holder.map { "process \($0)" } ?? "another process"); "
                + "stop it, or give this one another state directory"
        case .indexNewer(let path, let found, let known):
            "\(path) has format \(found), and this version knows up to \(known): install the newer version again, or "
                + "move the file away, which makes the next request of each pipeline unconditional"
        case .index(let error) where error.isFull:
            "no room for the index (\(error.message)): free some on the state directory's file system"
        case .index(let error):
            "the index failed: \(error.message) (\(error.code)) at \(error.during); if it persists, stop the daemon and "
                + "move the index away: it is rebuilt from the files"
        case .fileSystem(let error):
            error.description
        case .noSpace(let path, let available, let reserve):
            "only \(available) bytes are free on the file system of \(path), and \(reserve) must stay free; make room there"
                + Self.reserveKey
        case .noSpaceFor(let bytes, let path, let available, let reserve):
            "the new content takes \(bytes) bytes, only \(available) are free on the file system of \(path), and \(reserve) "
                + "must stay free; make room there" + Self.reserveKey
        case .overLimit(let bytes, let kept, let limit):
            "no room in the cache: the new content has \(bytes) bytes so far, copies and what else has to stay have \(kept), "
                + "and cache.max-total is \(limit); raise it in freshet.yaml, or remove pipelines"
        case .empty:
            "the new content is empty; the copy stays (check.min-bytes: 0 allows it)"
        case .tooSmall(let bytes, let minimum):
            "the new content has \(bytes) bytes, and check.min-bytes is \(minimum); the copy stays"
        case .tooLarge(let maximum):
            "the new content has more than the \(maximum) bytes of check.max-bytes; the copy stays"
        case .finished:
            "this content was committed or discarded before"
        case .stateLimit(let key):
            "the state \(String(reflecting: key)) of a pipeline is over the limit"
        case .pinned(let number):
            "the copy is pinned at generation \(number); unpin it first"
        case .pinnedGone(let number):
            "the copy is pinned at generation \(number), whose content is gone or damaged; unpin it, and what the origin "
                + "has takes its place"
        case .notKept(let number, let kept):
            (number.map { "generation \($0) is not kept" } ?? "no generation before the current one is kept")
                + (kept.isEmpty
                    ? "; cache.keep says how many are" : "; there are \(kept.map(String.init).joined(separator: ", "))")
        case .damaged(let number):
            "the file of generation \(number) is damaged"
        case .noCandidate:
            "nothing that a check refused is kept aside"
        case .otherCandidate(let digest):
            "what is kept aside is \(digest)"
        case .unreadable:
            "the file is gone or damaged"
        case .noBundle(let fault):
            "this content is not several files (\(fault)): it was made with another configuration, or by none"
        case .reassigned(let pipeline):
            "a reload has given \(pipeline) another file or other files meanwhile; its next run fills them"
        case .nothingOffered:
            "there is no copy"
        case .nothingKept(let path):
            "there is no index at \(path): nothing was ever kept there"
        case .digestUnavailable:
            "the system's crypto library offers no SHA-256: check the system's crypto policy"
        }
    }
}
