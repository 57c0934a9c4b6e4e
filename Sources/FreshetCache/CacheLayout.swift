package import FreshetModel

/// The paths of all files. Only this file composes paths and the names of generations and temporary files.
///
///     CACHE_DIRECTORY/current/FILE                          0755, the files that people read
///     CACHE_DIRECTORY/generations/PIPELINE/NUMBER-SHA256    0700, the same inodes, and older ones
///     CACHE_DIRECTORY/generations/PIPELINE/rejected-SHA256   the content that a check rejected last
///     CACHE_DIRECTORY/generations/PIPELINE/.new-TOKEN       being written
///     CACHE_DIRECTORY/current/.new-TOKEN                    for an instant of each commit
///     CACHE_DIRECTORY/strays/INODE-NAME                     0700, foreign files that were moved aside
///     STATE_DIRECTORY/index.sqlite, lock                    0600
///
/// For pipelines of several files see CacheLayout+Sets.swift.
///
/// The name of a generation has its digest, so that its content can be verified if the index is lost.
package struct CacheLayout: Hashable, Sendable {
    let cacheDirectory: String
    let stateDirectory: String
    /// The directory of published files, with the `/` at its end: a copy of each pipeline shares this text.
    private let publishedDirectory: String

    init(cacheDirectory: String, stateDirectory: String) {
        self.cacheDirectory = cacheDirectory
        self.stateDirectory = stateDirectory
        publishedDirectory = cacheDirectory + "/current/"
    }

    static let currentMode: UInt32 = 0o755
    static let generationsMode: UInt32 = 0o700
    /// The mode of a cache or state directory that Freshet makes; an existing directory keeps its mode.
    static let cacheDirectoryMode: UInt32 = 0o755
    static let stateDirectoryMode: UInt32 = 0o700

    var current: String { cacheDirectory + "/current" }
    var generations: String { cacheDirectory + "/generations" }
    /// Foreign files that were moved aside. Freshet does not read them.
    var strays: String { cacheDirectory + "/strays" }
    /// The cache directory may be a symbolic link; the dot follows it.
    var cacheDirectoryItself: String { cacheDirectory + "/." }
    var index: String { stateDirectory + "/index.sqlite" }
    var lock: String { stateDirectory + "/lock" }
    /// The path of a damaged index, which is kept for inspection. A few earlier ones are kept too: 0 is the newest.
    func damagedIndex(_ number: Int) -> String {
        stateDirectory + "/index.sqlite.damaged" + (number == 0 ? "" : ".\(number)")
    }

    /// The path of a published file.
    func reader(_ file: String) -> String { publishedDirectory + file }
    /// The same, for a generation, which a pipeline keeps.
    func location(_ file: String) -> PublishedLocation {
        PublishedLocation(directory: publishedDirectory, name: file)
    }
    func readerTemporary(_ token: UInt64) -> String { current + "/" + Self.temporary(token) }
    func generations(of pipeline: String) -> String { generations + "/" + pipeline }
    func generation(_ content: StoredContent, of pipeline: String) -> String {
        generations(of: pipeline) + "/" + content.name
    }
    func candidate(_ token: UInt64, of pipeline: String) -> String {
        generations(of: pipeline) + "/" + Self.temporary(token)
    }

    func rejected(_ digest: ContentDigest, of pipeline: String) -> String {
        generations(of: pipeline) + "/" + Self.rejectedPrefix + digest.description
    }

    private static let rejectedPrefix = "rejected-"
    /// The digest in the name of rejected content; nil if the name has another form.
    static func rejectedDigest(_ name: String) -> ContentDigest? {
        guard name.hasPrefix(rejectedPrefix) else { return nil }
        return ContentDigest(hexadecimal: name.dropFirst(rejectedPrefix.count))
    }

    private static let temporaryPrefix = ".new-"
    /// A temporary name. It is unique within the process; only one process uses a cache, and it removes the temporary
    /// files of an earlier process.
    static func temporary(_ token: UInt64) -> String { temporaryPrefix + String(token) }
    static func isTemporary(_ name: String) -> Bool { name.hasPrefix(temporaryPrefix) }
    /// The token of a temporary name; nil if the name has another form.
    static func token(of name: String) -> UInt64? {
        isTemporary(name) ? UInt64(name.dropFirst(temporaryPrefix.count)) : nil
    }
}

/// Identifies the content of a generation: its file name consists of the number and the digest.
package struct StoredContent: Hashable, Sendable {
    package var number: Int64
    package var digest: ContentDigest

    package init(number: Int64, digest: ContentDigest) {
        self.number = number
        self.digest = digest
    }

    /// Parses a name; nil if the name has another form.
    init?(name: String) {
        var name = name
        guard let content = name.withUTF8({ StoredContent(name: $0) }) else { return nil }
        self = content
    }

    private init?(name: UnsafeBufferPointer<UInt8>) {
        var number: Int64 = 0
        var end = 0
        // No leading zeros: Freshet does not make such names.
        while end < name.count, end < Self.mostDigits, name[end] != UInt8(ascii: "-") {
            let byte = name[end]
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), end > 0 || byte != UInt8(ascii: "0") else {
                return nil
            }
            // safe: sixteen digits are below 2⁶³.
            number = number * 10 + Int64(byte - UInt8(ascii: "0"))
            end += 1
        }
        guard end < name.count, name[end] == UInt8(ascii: "-"), IndexBounds.numbers.contains(number),
            let digest = ContentDigest(digits: name[(end + 1)...])
        else { return nil }
        self.init(number: number, digest: digest)
    }

    /// The digits of the largest number, 2⁵³ − 1.
    private static let mostDigits = 16

    var name: String { "\(number)-\(digest)" }
}
