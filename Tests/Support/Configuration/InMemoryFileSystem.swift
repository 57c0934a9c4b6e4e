package import FreshetConfiguration

/// Files of a configuration by their paths. A directory exists if there is a file below it.
package struct InMemoryFileSystem: ConfigurationFileSystem {
    package enum Entry: Hashable, Sendable {
        case bytes([UInt8])
        /// A link to the null device.
        case mask
        /// Reading the file fails with this error.
        case error(FileError)
        case emptyDirectory
    }

    package var entries: [String: Entry]

    package init(_ entries: [String: Entry] = [:]) {
        self.entries = entries
    }

    /// A file system of texts.
    package init(texts: [String: String]) {
        entries = texts.mapValues { .bytes(Array($0.utf8)) }
    }

    package func names(inDirectory path: String) throws(FileError) -> [String]? {
        switch entries[path] {
        case .error(let error): throw error
        case .bytes, .mask: throw FileError(message: "a directory is expected here: Not a directory")
        case .emptyDirectory, nil: break
        }
        let prefix = path + "/"
        var names: Set<String> = []
        for entry in entries.keys where entry.hasPrefix(prefix) {
            names.insert(String(entry.dropFirst(prefix.count).prefix { $0 != "/" }))
        }
        return names.isEmpty && entries[path] == nil ? nil : Array(names)
    }

    package func content(ofFile path: String, limit: Int) throws(FileError) -> FileContent {
        switch entries[path] {
        case .bytes(let bytes) where bytes.count > limit: throw .tooLarge(limit: limit)
        case .bytes(let bytes): return .bytes(bytes)
        case .mask: return .masked
        case .error(let error): throw error
        case .emptyDirectory: throw .notRegular
        case nil:
            if entries.keys.contains(where: { $0.hasPrefix(path + "/") }) { throw .notRegular }
            return .absent
        }
    }
}
