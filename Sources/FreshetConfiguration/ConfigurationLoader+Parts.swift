/// One file of the configuration with its unparsed content.
package struct ConfigurationPart: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        case bytes([UInt8])
        /// The file is the null device: it hides the files of the same name in directories of lower priority.
        case masked
        case unreadable(FileError)
    }

    /// The pipeline that the file belongs to; nil for a file of the daemon or of a hook of several pipelines.
    package var pipeline: String?
    /// The hook of several pipelines that the file belongs to.
    package var hook: String?
    package var file: String
    package var content: Content
    /// Whether the file is merged over another file.
    package var isDropIn: Bool = false
}

extension ConfigurationLoader {
    /// The names of all pipelines that have a file, masked ones included.
    package func pipelineNames() -> [String] {
        var search = FileSearch(searchPath: searchPath, fileSystem: fileSystem)
        return search.findPipelines().map(\.name)
    }

    /// The file of the pipeline of this name; nil if there is no such file, or it is masked.
    package func file(ofPipeline name: String) -> String? {
        var search = FileSearch(searchPath: searchPath, fileSystem: fileSystem)
        // Compares names and does not build a path: the name comes from a client.
        guard let file = search.findPipelines().first(where: { $0.name == name })?.file else { return nil }
        return switch partContent(of: file) {
        case .masked?, nil: nil
        default: file
        }
    }

    /// The files that are in use, in the order in which they are merged: the daemon's first, then those of each
    /// pipeline, and those of each hook of several pipelines.
    ///
    /// - Parameter isIncluded: whether the files of a pipeline are returned; its argument is nil for the daemon's
    ///   files and for those of hooks.
    /// - Returns: the files, and an error for each directory that could not be read.
    package func parts(where isIncluded: (String?) -> Bool) -> (parts: [ConfigurationPart], errors: [Diagnostic]) {
        var search = FileSearch(searchPath: searchPath, fileSystem: fileSystem)
        let groups =
            (isIncluded(nil) ? [search.findDaemon()] : []) + search.findPipelines().filter { isIncluded($0.name) }
            + (isIncluded(nil) ? search.findHooks() : [])
        var parts: [ConfigurationPart] = []
        for group in groups {
            let pipeline = group.kind == .pipeline ? group.name : nil
            let hook = group.kind == .hook ? group.name : nil
            for (file, isDropIn) in (group.file.map { [($0, false)] } ?? []) + group.dropIns.map({ ($0, true) }) {
                guard let content = partContent(of: file) else { continue }
                parts.append(
                    ConfigurationPart(
                        pipeline: pipeline, hook: hook, file: file, content: content, isDropIn: isDropIn))
                // Drop-ins of a masked pipeline or hook are not used.
                if !group.isDaemon, !isDropIn, content == .masked { break }
            }
        }
        return (parts, search.errors)
    }

    /// The content of a file; nil if the file was removed since its directory was listed.
    private func partContent(of file: String) -> ConfigurationPart.Content? {
        do throws(FileError) {
            return switch try fileSystem.content(ofFile: file, limit: SourceText.maximumSize) {
            case .bytes(let bytes): .bytes(bytes)
            case .masked: .masked
            case .absent: nil
            }
        } catch {
            return .unreadable(error)
        }
    }
}
