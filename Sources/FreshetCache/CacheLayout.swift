/// Where everything is. Only this file composes paths and the names of generations and temporaries.
///
///     CACHE_DIRECTORY/current/FILE                          0755, what people read
///     CACHE_DIRECTORY/generations/PIPELINE/NUMBER-SHA256    0700, the same inodes, and older ones
///     CACHE_DIRECTORY/generations/PIPELINE/refused-SHA256   what a check refused last, for a look
///     CACHE_DIRECTORY/generations/PIPELINE/.new-TOKEN       being written
///     CACHE_DIRECTORY/current/.new-TOKEN                    for an instant of each commit
///     CACHE_DIRECTORY/strays/INODE-NAME                     0700, what was found where it does not belong
///     STATE_DIRECTORY/index.sqlite, lock                    0600
///
/// For pipelines of several files see CacheLayout+Sets.swift.
///
/// A generation's name carries its digest, so that the content proves itself when the index is lost.
package struct CacheLayout: Hashable, Sendable {
    let cacheDirectory: String
    let stateDirectory: String

    static let currentMode: UInt32 = 0o755
    static let generationsMode: UInt32 = 0o700
    /// For a cache or state directory that is made here; one that exists keeps its mode.
    static let cacheDirectoryMode: UInt32 = 0o755
    static let stateDirectoryMode: UInt32 = 0o700

    var current: String { cacheDirectory + "/current" }
    var generations: String { cacheDirectory + "/generations" }
    /// What an examination has moved aside. Nothing reads it.
    var strays: String { cacheDirectory + "/strays" }
    /// The cache directory itself may be a symbolic link; the dot goes through it.
    var cacheDirectoryItself: String { cacheDirectory + "/." }
    var index: String { stateDirectory + "/index.sqlite" }
    var lock: String { stateDirectory + "/lock" }
    /// A damaged index is kept for whoever wants to look, and so are a few of before: 0 is the newest.
    func damagedIndex(_ number: Int) -> String {
        stateDirectory + "/index.sqlite.damaged" + (number == 0 ? "" : ".\(number)")
    }

    func reader(_ file: String) -> String { current + "/" + file }
    func readerTemporary(_ token: UInt64) -> String { current + "/" + Self.temporary(token) }
    func generations(of pipeline: String) -> String { generations + "/" + pipeline }
    func generation(_ content: StoredContent, of pipeline: String) -> String {
        generations(of: pipeline) + "/" + content.name
    }
    func candidate(_ token: UInt64, of pipeline: String) -> String {
        generations(of: pipeline) + "/" + Self.temporary(token)
    }

    func refused(_ digest: ContentDigest, of pipeline: String) -> String {
        generations(of: pipeline) + "/" + Self.refusedPrefix + digest.description
    }

    private static let refusedPrefix = "refused-"
    /// Whose content a name says that it is; nil: it is none that was refused.
    static func refusedDigest(_ name: String) -> ContentDigest? {
        guard name.hasPrefix(refusedPrefix) else { return nil }
        return ContentDigest(hexadecimal: name.dropFirst(refusedPrefix.count))
    }

    private static let temporaryPrefix = ".new-"
    /// Unique within the process; only one process uses a cache, and it removes what an earlier one left.
    static func temporary(_ token: UInt64) -> String { temporaryPrefix + String(token) }
    static func isTemporary(_ name: String) -> Bool { name.hasPrefix(temporaryPrefix) }
    /// That of a temporary name; nil: it has none.
    static func token(of name: String) -> UInt64? {
        isTemporary(name) ? UInt64(name.dropFirst(temporaryPrefix.count)) : nil
    }
}

/// A generation's content as the file system knows it: its name says number and digest.
package struct StoredContent: Hashable, Sendable {
    package var number: Int64
    package var digest: ContentDigest

    package init(number: Int64, digest: ContentDigest) {
        self.number = number
        self.digest = digest
    }

    /// Parses a name; nil if it is none of ours.
    init?(name: String) {
        guard let dash = name.firstIndex(of: "-"), let number = Int64(name[..<dash]),
            IndexBounds.numbers.contains(number),
            let digest = ContentDigest(hexadecimal: name[name.index(after: dash)...])
        else { return nil }
        self.init(number: number, digest: digest)
        // "+1-…" and "01-…" parse as numbers too, but are not the names that we make.
        guard self.name == name else { return nil }
    }

    var name: String { "\(number)-\(digest)" }
}
