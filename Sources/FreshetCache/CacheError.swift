package import FreshetModel

/// An error of the cache. `description` is one sentence for people, with the remedy.
package indirect enum CacheError: Error, Hashable, Sendable {
    /// A commit has failed after readers saw the new content. The index records it as soon as possible.
    case afterPublication(CacheError)
    /// The name of a pipeline or file that cannot be used as a file name in the cache.
    case invalidName(String, reason: CacheName.ValidationError)
    /// Two pipelines have the same `cache.file`.
    case fileOwned(file: String, owner: String, claimant: String)
    /// Another process uses the state directory.
    case stateLocked(directory: String, holder: Int32?)
    /// A newer Freshet wrote the index.
    case indexNewer(path: String, found: Int64, known: Int64)
    /// SQLite failed.
    case index(SQLiteError)
    /// There is no space for the index, so records of runs and checks wait.
    case recordsWait(SQLiteError)
    /// This many records could not be stored before the end.
    case recordsLost(Int, SQLiteError)
    /// A system call failed.
    case fileSystem(SystemCallError)
    /// No space: the candidate would use, or has used, space that must stay free.
    case noSpace(path: String, available: UInt64, reserve: UInt64)
    /// No space for a candidate of this many bytes.
    case noSpaceFor(bytes: UInt64, path: String, available: UInt64, reserve: UInt64)
    /// The file system of this path has no inodes left for new files.
    case noInodes(path: String)
    /// A disk quota is used up at this path.
    case quotaUsed(path: String)
    /// A file of the cache, or the directory that it must be in, is missing: another program has removed it.
    case removed(SystemCallError, isDirectory: Bool)
    /// The content that must stay and the candidate of this many bytes exceed the quota of the cache.
    case overLimit(bytes: Int64, kept: Int64, limit: Int64)
    /// The candidate has no content.
    case empty
    /// The candidate is smaller than `check.min-bytes`.
    case tooSmall(bytes: Int64, minimum: Int64)
    /// The candidate is larger than `check.max-bytes`.
    case tooLarge(maximum: Int64)
    /// The candidate was committed or discarded before, also after an earlier error.
    case finished
    /// A key or value of the small state is over its limit, or there are too many keys.
    case stateLimit(key: String)
    /// libcrypto does not provide SHA-256.
    case digestUnavailable
    /// The pipeline's copy is pinned at this generation.
    case pinned(Int64)
    /// The pinned generation is gone or damaged, and other content does not take its place.
    case pinnedGone(Int64)
    /// The content of this generation is not kept, or never existed; nil: no generation before the current one is kept.
    case notKept(Int64?, kept: [Int64])
    /// The content of this generation's file has changed.
    case damaged(Int64)
    /// There is no rejected content.
    case noCandidate
    /// The rejected content is not the expected content.
    case otherCandidate(ContentDigest)
    /// The file is missing, or its content has changed.
    case unreadable
    /// The content is not a bundle of files, but the pipeline keeps several files.
    case noBundle(String)
    /// During the operation, a reload assigned another file to the pipeline, or changed it from one file to several
    /// files or the reverse.
    case reassigned(String)
    /// There is nothing to pin.
    case nothingPublished
    /// There is no index at this path, so there is nothing to examine.
    case nothingKept(String)
}

extension CacheError {
    /// Whether the index has failed, and not a file of the cache.
    package var isOfIndex: Bool { if case .index = self { true } else { false } }

    /// Whether the index cannot be written now, or another process has locked it.
    package var isTransient: Bool {
        if case .index(let error) = self { error.isUnwritable || error.isBusy } else { false }
    }

    /// Whether the index cannot be written now: there is no space, or its file system is read-only.
    var isFullIndex: Bool { if case .index(let error) = self { error.isUnwritable } else { false } }
}

extension CacheError {
    /// The error of a start, with missing inodes or space as its reason. SQLite only says that it cannot open the index,
    /// because it could not make a file beside it.
    func namingFullDisk(stateDirectory: String, _ fileSystem: some FileSystem) -> CacheError {
        switch self {
        case .index(let error) where error.cannotOpen:
            guard let space = try? fileSystem.space(stateDirectory) else { return self }
            if !space.hasInodes { return .noInodes(path: stateDirectory) }
            return space.available == 0 ? .index(.full(error.message, during: error.during)) : self
        case .fileSystem(let error) where error.isFull && error.call != "write":
            let directory = error.path.lastIndex(of: "/").map { String(error.path[..<$0]) } ?? ""
            guard let space = try? fileSystem.space(directory) else { return self }
            return space.hasInodes ? self : .noInodes(path: error.path)
        default: return self
        }
    }
}

extension CacheError: CustomStringConvertible {
    /// The remedy for a lack of space; nothing must stay free if `cache.min-free` is 0.
    private static func remedy(_ reserve: UInt64) -> String {
        "; free some space there"
            + (reserve > 0
                ? ", or lower cache.min-free in freshet.yaml"
                : ", or limit the cache with cache.max-total in freshet.yaml, so that it removes old content before")
    }

    /// What must stay free, after what is free.
    private static func mustStayFree(_ reserve: UInt64) -> String {
        reserve > 0 ? ", and \(reserve) must stay free" : ""
    }

    package var description: String {
        switch self {
        case .afterPublication(let error):
            "the new content is published, but it is not recorded yet: \(error)"
        case .invalidName(let name, let reason):
            "\(String(reflecting: name)) cannot be a file's name in the cache: \(reason)"
        case .fileOwned(let file, let owner, let claimant):
            "the pipelines \(owner) and \(claimant) both have the cache file \(file); give one of them another cache.file"
        case .stateLocked(let directory, let holder):
            "the state directory \(directory) is in use by \(holder.map { "process \($0)" } ?? "another process"); "
                + "stop it, or give this one another state directory"
        case .indexNewer(let path, let found, let known):
            "\(path) has format \(found), but this version supports formats up to \(known); install the newer version again, "
                + "or move the file away (then the next request of each pipeline is unconditional)"
        case .index(let error) where error.isFull:
            "no space for the index (\(error.message)); free some space on the file system of the state directory"
        case .index(let error) where error.isReadOnly:
            "the index cannot be written, because the file system of the state directory is read-only; after an error of the "
                + "disk, the kernel makes it so: repair the file system, and make it writable again"
        case .index(let error) where error.isBusy:
            "another program has locked the index (\(error.message)); end it, or wait until it ends"
        case .index(let error):
            "the index failed: \(error.message) (\(error.code)) at \(error.during); if it persists, stop the daemon and "
                + "move the index away; the next start rebuilds it from the files"
        case .recordsWait(let error):
            CacheError.index(error).description + "; until then, records of runs and checks wait in memory"
        case .recordsLost(let count, let error):
            (count == 1
                ? "the last record of a run, check or hook is lost"
                : "the last \(count) records of runs, checks and hooks are lost")
                + ": \(error.message)"
        case .fileSystem(let error):
            error.description
        case .noSpace(let path, let available, let reserve):
            "only \(available) bytes are free on the file system of \(path)" + Self.mustStayFree(reserve)
                + Self.remedy(reserve)
        case .noSpaceFor(let bytes, let path, let available, let reserve):
            "the new content takes \(bytes) bytes, only \(available) are free on the file system of \(path)"
                + Self.mustStayFree(reserve) + Self.remedy(reserve)
        case .noInodes(let path):
            "no inodes are left for new files on the file system of \(path); remove files there"
        case .quotaUsed(let path):
            "the disk quota is used up at \(path); raise it, or free some space or remove files there"
        case .removed(let error, let isDirectory):
            error.description
                + (isDirectory
                    ? "; the cache directory was removed" : "; another program removed a file of the cache")
                + "; the next attempt makes it again"
        case .overLimit(let bytes, let kept, let limit):
            "the cache is full: the new content has \(bytes) bytes so far, copies and other content that must stay have \(kept), "
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
            "the copy is pinned at generation \(number), whose content is missing or damaged; unpin it, so that the next "
                + "refresh replaces it"
        case .notKept(let number, let kept):
            (number.map { "generation \($0) is not kept" } ?? "no generation before the current one is kept")
                + (kept.isEmpty
                    ? "; cache.keep sets how many are kept"
                    : "; these generations are kept: \(kept.map(String.init).joined(separator: ", "))")
        case .damaged(let number):
            "the file of generation \(number) is damaged"
        case .noCandidate:
            "there is no rejected content"
        case .otherCandidate(let digest):
            "the rejected content has the digest \(digest)"
        case .unreadable:
            "the file is missing or damaged"
        case .noBundle(let error):
            "this content is not a bundle of files (\(error)); it was made with another configuration"
        case .reassigned(let pipeline):
            "a reload assigned other files to \(pipeline) meanwhile; the next run writes them"
        case .nothingPublished:
            "there is no copy"
        case .nothingKept(let path):
            "there is no index at \(path); nothing was ever kept there"
        case .digestUnavailable:
            "the system's crypto library does not provide SHA-256; check the system's crypto policy"
        }
    }
}
