/// The paths of pipelines that keep several files.
///
///     CACHE_DIRECTORY/current/NAME                      a symbolic link to the directory of the current generation
///     CACHE_DIRECTORY/current/NAME.stamp                the generation's own file: all of its files as one JSON object
///     CACHE_DIRECTORY/sets/PIPELINE/NUMBER-SECRET/      0755, the files of a generation
///     CACHE_DIRECTORY/sets/PIPELINE/.new-TOKEN/         being written
///
/// The stamp is the published file of such a pipeline: it is committed, restored and verified as any other published
/// file. The directories are derived from it.
extension CacheLayout {
    /// The mode of the parents of the directories of generations: a reader that has a path can use it, and only the
    /// service can list the names.
    static let setsMode: UInt32 = 0o711
    static let setMode: UInt32 = 0o755
    /// The suffix of the stamp's name after the name of the link.
    package static let stampSuffix = ".stamp"

    var sets: String { cacheDirectory + "/sets" }
    func sets(of pipeline: String) -> String { sets + "/" + pipeline }
    /// - Parameter set: see ``FileSetStore/name(of:in:)``.
    func set(_ set: StoredContent, of pipeline: String) -> String { sets(of: pipeline) + "/" + set.name }
    func temporarySet(_ token: UInt64, of pipeline: String) -> String {
        sets(of: pipeline) + "/" + Self.temporary(token)
    }
    func temporaryFile(_ token: UInt64, in directory: String) -> String { directory + "/" + Self.temporary(token) }

    /// The target of the link, relative to `current/`, so that the cache directory can be moved.
    static func target(_ set: StoredContent, of pipeline: String) -> String {
        targetPrefix(of: pipeline) + set.name
    }
    static func targetPrefix(of pipeline: String) -> String { "../sets/" + pipeline + "/" }

    /// The names below `current/` that a file uses.
    static func names(of file: String, isSet: Bool) -> [String] {
        [file] + (isSet ? linkName(ofStamp: file).map { [$0] } ?? [] : [])
    }

    /// The name of the link beside a stamp.
    static func linkName(ofStamp file: String) -> String? {
        file.hasSuffix(stampSuffix) ? String(file.dropLast(stampSuffix.utf8.count)) : nil
    }
}

extension CacheDestination {
    /// The name of the link to the directory; nil if the pipeline keeps one file.
    var link: String? { isSet ? CacheLayout.linkName(ofStamp: file) : nil }
}

extension IndexedPipeline {
    /// The name of the link to the directory; nil if the pipeline keeps one file, or has no file.
    var link: String? { isSet ? file.flatMap(CacheLayout.linkName(ofStamp:)) : nil }
}
