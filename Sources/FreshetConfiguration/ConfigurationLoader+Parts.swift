/// A file of the configuration as it stands there, for whoever wants to read what counts.
package struct ConfigurationPart: Hashable, Sendable {
    package enum Content: Hashable, Sendable {
        case bytes([UInt8])
        /// It is the null device: what has its name below does not count either.
        case masked
        case unreadable(FileError)
    }

    /// Nil: it is the daemon's.
    package var pipeline: String?
    package var file: String
    package var content: Content
    /// It is laid over another file.
    package var isDropIn: Bool

    package init(pipeline: String?, file: String, content: Content, isDropIn: Bool = false) {
        self.pipeline = pipeline
        self.file = file
        self.content = content
        self.isDropIn = isDropIn
    }
}

extension ConfigurationLoader {
    /// The names of all pipelines that have a file, masked ones included.
    package func pipelineNames() -> [String] {
        var search = FileSearch(searchPath: searchPath, fileSystem: fileSystem)
        return search.findPipelines().map(\.name)
    }

    /// The file that a pipeline would have of this name; nil if there is none, or it is masked.
    package func file(ofPipeline name: String) -> String? {
        var search = FileSearch(searchPath: searchPath, fileSystem: fileSystem)
        // By the names that are there: what was asked for leads to no path.
        guard let file = search.findPipelines().first(where: { $0.name == name })?.file else { return nil }
        return switch partContent(of: file) {
        case .masked?, nil: nil
        default: file
        }
    }

    /// The files that count, in the order in which they are laid over each other: the daemon's first, then those of each
    /// pipeline.
    ///
    /// - Parameter isWanted: whether a pipeline's are asked for; gets nil for the daemon's.
    /// - Returns: the files, and directories that could not be read.
    package func parts(where isWanted: (String?) -> Bool) -> (parts: [ConfigurationPart], faults: [Diagnostic]) {
        var search = FileSearch(searchPath: searchPath, fileSystem: fileSystem)
        let groups = (isWanted(nil) ? [search.findDaemon()] : []) + search.findPipelines().filter { isWanted($0.name) }
        var parts: [ConfigurationPart] = []
        for group in groups {
            let pipeline = group.isDaemon ? nil : group.name
            for (file, isDropIn) in (group.file.map { [($0, false)] } ?? []) + group.dropIns.map({ ($0, true) }) {
                guard let content = partContent(of: file) else { continue }
                parts.append(
                    ConfigurationPart(pipeline: pipeline, file: file, content: content, isDropIn: isDropIn))
                // Drop-ins of a pipeline that is masked are laid over nothing.
                if !group.isDaemon, !isDropIn, content == .masked { break }
            }
        }
        return (parts, search.faults)
    }

    /// Nil: it went away since its directory was listed.
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
