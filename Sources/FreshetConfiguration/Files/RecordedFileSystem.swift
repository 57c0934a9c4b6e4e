/// The files of a configuration as they were at one moment. A process of root reads a draft that only root may read,
/// drops its privileges, and then parses the files.
package struct RecordedFileSystem: ConfigurationFileSystem {
    private var names: [String: Result<[String]?, FileError>] = [:]
    private var contents: [String: Result<FileContent, FileError>] = [:]

    /// Reads all files that a loader may ask for. Blocks.
    package init(_ base: any ConfigurationFileSystem, at path: SearchPath) {
        for top in path.directories {
            record(base, directory: top)
            record(base, directory: SearchPath.path(top, "freshet.d"))
            for directory in ["pipelines", FileSearch.hookDirectory] {
                let path = SearchPath.path(top, directory)
                for name in record(base, directory: path) where name.hasSuffix(".yaml.d") {
                    record(base, directory: SearchPath.path(path, name))
                }
            }
        }
    }

    @discardableResult
    private mutating func record(_ base: any ConfigurationFileSystem, directory: String) -> [String] {
        let found = Result { () throws(FileError) in try base.names(inDirectory: directory) }
        names[directory] = found
        guard case .success(let list?) = found, list.count <= FileSearch.maximumNames else { return [] }
        for name in list where name.hasSuffix(".yaml") || name.hasSuffix(TransformReader.suffix) {
            let file = SearchPath.path(directory, name)
            contents[file] = Result { () throws(FileError) in
                try base.content(ofFile: file, limit: SourceText.maximumSize)
            }
        }
        return list
    }

    package func names(inDirectory path: String) throws(FileError) -> [String]? {
        try names[path]?.get() ?? nil
    }

    package func content(ofFile path: String, limit: Int) throws(FileError) -> FileContent {
        if let recorded = contents[path] { return try recorded.get().within(limit) }
        // Templates may be anywhere; they are read with the rights of the service's user.
        return path.hasSuffix(".yaml") ? .absent : try HostFileSystem().content(ofFile: path, limit: limit)
    }
}
