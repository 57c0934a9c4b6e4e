/// Where the files are of pipelines that keep several.
///
///     CACHE_DIRECTORY/current/NAME                      a symbolic link to the directory of the current generation
///     CACHE_DIRECTORY/current/NAME.stamp                the generation's own file: all of its files as one JSON object
///     CACHE_DIRECTORY/sets/PIPELINE/NUMBER-SHA256/      0755, the files of a generation
///     CACHE_DIRECTORY/sets/PIPELINE/.new-TOKEN/         being written
///
/// The stamp is the reader's file of such a pipeline: it is committed, restored and verified as any other one. The
/// directories are derived from it.
extension CacheLayout {
    /// For the way to the directories of generations: who has a name may go there, and nobody but the service sees which
    /// there are.
    static let setsMode: UInt32 = 0o711
    static let setMode: UInt32 = 0o755
    /// What the name of the stamp has after that of the link.
    package static let stampSuffix = ".stamp"

    var sets: String { cacheDirectory + "/sets" }
    func sets(of pipeline: String) -> String { sets + "/" + pipeline }
    func set(_ content: StoredContent, of pipeline: String) -> String { sets(of: pipeline) + "/" + content.name }
    func temporarySet(_ token: UInt64, of pipeline: String) -> String {
        sets(of: pipeline) + "/" + Self.temporary(token)
    }
    func temporaryFile(_ token: UInt64, in directory: String) -> String { directory + "/" + Self.temporary(token) }

    /// Where the link leads; seen from `current/`, so that the cache directory may be moved.
    static func target(_ content: StoredContent, of pipeline: String) -> String {
        targetPrefix(of: pipeline) + content.name
    }
    static func targetPrefix(of pipeline: String) -> String { "../sets/" + pipeline + "/" }

    /// The name of the link beside a stamp.
    static func linkName(ofStamp file: String) -> String? {
        file.hasSuffix(stampSuffix) ? String(file.dropLast(stampSuffix.utf8.count)) : nil
    }
}

extension CacheDestination {
    /// The name of the link to the directory; nil: it is one file.
    var link: String? { isSet ? CacheLayout.linkName(ofStamp: file) : nil }
}

extension IndexedPipeline {
    /// The name of the link to the directory; nil: it keeps one file, or none.
    var link: String? { isSet ? file.flatMap(CacheLayout.linkName(ofStamp:)) : nil }
}
