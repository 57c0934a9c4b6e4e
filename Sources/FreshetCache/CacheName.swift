/// The rules for names of pipelines and of their files: each name is one component of a path.
package enum CacheName {
    /// An error in a name; `description` completes a sentence.
    package enum ValidationError: Hashable, Sendable, CustomStringConvertible {
        case empty
        case tooLong
        case leadingDot
        case slash
        case controlCharacter

        package var description: String {
            switch self {
            case .empty: "it is empty"
            case .tooLong: "it has more than \(CacheLimits.nameBytes) bytes"
            case .leadingDot: "it begins with a dot"
            case .slash: "it contains a slash"
            case .controlCharacter: "it contains a control character"
            }
        }
    }

    /// Returns the error in `name` as the name of a pipeline or as `cache.file`; nil if the name is valid.
    ///
    /// Names with a leading dot are reserved for the cache's temporary names. Control characters would be legal in file
    /// names, but such a name is printed to terminals.
    package static func error(in name: String) -> ValidationError? {
        if name.isEmpty { return .empty }
        if name.utf8.count > CacheLimits.nameBytes { return .tooLong }
        if name.utf8.first == UInt8(ascii: ".") { return .leadingDot }
        for byte in name.utf8 {
            if byte == UInt8(ascii: "/") { return .slash }
            if byte < 0x20 || byte == 0x7f { return .controlCharacter }
        }
        return nil
    }

    /// Throws ``CacheError/invalidName(_:reason:)`` for an invalid name.
    package static func check(_ name: String) throws(CacheError) {
        if let error = error(in: name) { throw .invalidName(name, reason: error) }
    }

    /// Checks the names of a whole configuration: that each name is valid, and that no file has two owners.
    ///
    /// - Parameters:
    ///   - files: the `cache.file` of each pipeline.
    ///   - sets: the pipelines that keep several files: their file is the stamp, and they own the name of the link too.
    package static func check(
        _ files: [(pipeline: String, file: String)], sets: Set<String> = []
    ) throws(CacheError) {
        var owners: [String: String] = [:]
        owners.reserveCapacity(files.count)
        for (pipeline, file) in files {
            try check(pipeline)
            for name in CacheLayout.names(of: file, isSet: sets.contains(pipeline)) {
                try check(name)
                if let owner = owners.updateValue(pipeline, forKey: name), owner != pipeline {
                    throw .fileOwned(file: name, owner: owner, claimant: pipeline)
                }
            }
        }
    }
}
