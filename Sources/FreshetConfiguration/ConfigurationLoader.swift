import FreshetPipelines

/// Reads a configuration from the files of a search path.
///
///     let path = SearchPath(flags: flags, configurationDirectory: environment["CONFIGURATION_DIRECTORY"])
///     let configuration = ConfigurationLoader(searchPath: path).load()
///     for diagnostic in configuration.diagnostics { print(diagnostic.text()) }
///
/// `load()` reads files and so blocks; everything it finds is in what it returns.
package struct ConfigurationLoader: Sendable {
    /// The format that this version reads.
    static let format = "1"
    /// How many faults of one pipeline are reported; whoever has more is not helped by the rest.
    package static let maximumDiagnostics = 100

    package let searchPath: SearchPath
    let terms: LoadContext
    let fileSystem: any ConfigurationFileSystem

    package init(
        searchPath: SearchPath, terms: LoadContext = LoadContext(),
        fileSystem: any ConfigurationFileSystem = HostFileSystem()
    ) {
        self.searchPath = searchPath
        self.terms = terms
        self.fileSystem = fileSystem
    }

    /// Reads all files.
    package func load() -> Configuration {
        var configuration = Configuration()
        var search = FileSearch(searchPath: searchPath, fileSystem: fileSystem)
        let found = search.findPipelines()
        let daemon = search.findDaemon()
        var faults = search.faults

        let daemonFile = read(daemon, files: &configuration.daemonFiles)
        var reader = DefinitionReader(isIncomplete: daemonFile.isIncomplete)
        if let root = daemonFile.root { configuration.daemon = reader.daemon(from: root) }
        faults += withExcerpts(limited(daemonFile.faults + reader.faults), from: daemonFile.sources)
        configuration.daemonDiagnostics = faults.sorted(by: Diagnostic.areInReadingOrder)

        var byName: [String: [Diagnostic]] = [:]
        var cacheFiles: [String: [(pipeline: String, place: CacheFileLocation)]] = [:]
        var order = PipelineOrder()
        for group in found {
            var files: [String] = []
            let (definition, cacheFile, predecessors, faults) = pipeline(group, files: &files)
            // A mask, or a file that went away since its directory was listed.
            guard !files.isEmpty || !faults.isEmpty else { continue }
            configuration.files[group.name] = files
            order.add(group.name, after: predecessors)
            if let definition { configuration.pipelines.append(configuration.daemon.completing(definition)) }
            if !faults.isEmpty { byName[group.name] = faults }
            for name in cacheFile?.names ?? [] {
                if let cacheFile { cacheFiles[name, default: []].append((group.name, cacheFile)) }
            }
        }
        // Two directories of one name have stamps of one name too.
        for (file, owners) in cacheFiles
        where owners.count > 1 && owners.contains(where: { $0.place.names.first == file }) {
            for (index, owner) in owners.enumerated() {
                let other = owners[index == 0 ? 1 : 0]
                let fault = Diagnostic(
                    at: owner.place.location, keyPath: "cache.file",
                    message: "\(file.quoted) is the cache file of pipeline '\(other.pipeline)' too",
                    remedy: "give each its own", related: other.place.location)
                byName[owner.pipeline, default: []] += withExcerpts(
                    [fault], from: source(of: owner.place.location.file))
            }
        }
        for (name, fault) in order.faults(among: configuration.files.keys) {
            byName[name, default: []] += withExcerpts([fault], from: source(of: fault.file))
        }
        configuration.faulty = byName.filter { $0.value.contains { $0.severity == .error } }
            .mapValues { $0.sorted(by: Diagnostic.areInReadingOrder) }
        configuration.pipelines.removeAll { configuration.faulty[$0.name] != nil }
        configuration.connect(cacheFiles.values.compactMap { $0.count == 1 ? $0.first : nil })
        configuration.diagnostics = (configuration.daemonDiagnostics + byName.values.joined())
            .sorted(by: Diagnostic.areInReadingOrder)
        return configuration
    }

    private func pipeline(
        _ group: FileSearch.Group, files: inout [String]
    ) -> (PipelineDefinition?, cacheFile: CacheFileLocation?, [Predecessor], [Diagnostic]) {
        if let fault = PipelineName.fault(group.name) {
            let file = group.file ?? group.name
            files = [file]
            return (nil, nil, [], [Diagnostic(file: file, message: fault.message, remedy: fault.remedy)])
        }
        let merged = read(group, files: &files)
        var reader = DefinitionReader(isIncomplete: merged.isIncomplete, terms: terms)
        let result = merged.root.map { reader.pipeline(named: group.name, from: $0) }
        let faults = withExcerpts(limited(merged.faults + reader.faults), from: merged.sources)
        return (result?.definition, result?.cacheFile, reader.predecessors, faults)
    }

    // MARK: Files into one tree

    /// A file and its drop-ins, merged.
    private struct Merged {
        /// Nil if the file itself is masked, absent or could not be read.
        var root: Node?
        var sources: [String: SourceText] = [:]
        var faults: [Diagnostic] = []
        /// A drop-in could not be read.
        var isIncomplete = false
    }

    private func read(_ group: FileSearch.Group, files: inout [String]) -> Merged {
        var merged = Merged()
        if let file = group.file {
            switch content(of: file, into: &merged) {
            case .masked, .absent:
                // For the daemon, the defaults are still there for the drop-ins to change.
                guard group.isDaemon else { return merged }
                merged.root = Self.nothing(in: file)
            case .read(let root):
                files.append(file)
                merged.root = root
            case .faulty:
                files.append(file)
            }
        } else if let first = group.dropIns.first {
            merged.root = Self.nothing(in: first)
        }
        for dropIn in group.dropIns {
            switch content(of: dropIn, into: &merged) {
            case .masked, .absent:
                continue
            case .read(let root):
                files.append(dropIn)
                merged.root = merged.root?.merging(root)
            case .faulty:
                files.append(dropIn)
                merged.isIncomplete = true
            }
        }
        return merged
    }

    private static func nothing(in file: String) -> Node {
        Node(content: .mapping([]), location: Location(file: file, line: 1, column: 1))
    }

    private enum Content {
        case masked, absent, faulty
        case read(Node)
    }

    private func content(of file: String, into merged: inout Merged) -> Content {
        do throws(FileError) {
            switch try fileSystem.content(ofFile: file, limit: SourceText.maximumSize) {
            case .masked: return .masked
            case .absent: return .absent
            case .bytes(let bytes):
                let result = YAMLReader.read(SourceText(file: file, bytes: bytes))
                merged.sources[file] = result.source
                merged.faults += result.faults
                guard let root = result.root else { return .faulty }
                return withoutFormat(root, into: &merged).map { .read($0) } ?? .faulty
            }
        } catch {
            merged.faults.append(Diagnostic(file: file, message: error.message, remedy: error.remedy))
            return .faulty
        }
    }

    /// The tree without its `format`, which each file states for itself; nil, with a fault, if it is another's.
    private func withoutFormat(_ root: Node, into merged: inout Merged) -> Node? {
        guard case .mapping(var entries) = root.content,
            let index = entries.firstIndex(where: { $0.key == "format" })
        else { return root }
        let entry = entries.remove(at: index)
        guard case .scalar(let scalar) = entry.value.content, scalar.text == Self.format else {
            let isNumber = if case .scalar(let scalar) = entry.value.content { UInt(scalar.text) != nil } else { false }
            merged.faults.append(
                Diagnostic(
                    at: entry.value.location, keyPath: "format",
                    message: isNumber
                        ? "this version reads format \(Self.format) only" : "'format' has to be \(Self.format)",
                    remedy: isNumber ? "the file was written for another version of Freshet" : nil))
            return nil
        }
        return Node(content: .mapping(entries), location: root.location)
    }

    // MARK: Faults

    private func limited(_ faults: [Diagnostic]) -> [Diagnostic] {
        guard faults.count > Self.maximumDiagnostics, let last = faults.last else { return faults }
        let sorted = faults.sorted(by: Diagnostic.areInReadingOrder)
        let hidden = sorted.dropFirst(Self.maximumDiagnostics)
        let rest = Diagnostic(
            file: last.file, severity: hidden.contains { $0.severity == .error } ? .error : .warning,
            message: "\(hidden.count) further faults are not shown",
            remedy: "repair those above first")
        return sorted.prefix(Self.maximumDiagnostics) + [rest]
    }

    private func withExcerpts(_ faults: [Diagnostic], from sources: [String: SourceText]) -> [Diagnostic] {
        faults.map { fault in
            guard let line = fault.line, let column = fault.column else { return fault }
            var fault = fault
            fault.excerpt = sources[fault.file]?.excerpt(line: line, column: column)
            return fault
        }
    }

    /// A file's text once more, for a fault that shows only when all files are read.
    private func source(of file: String) -> [String: SourceText] { tree(of: file).sources }

    /// One file once more, without its drop-ins; no tree if it is faulty or has gone.
    func tree(of file: String) -> (root: Node?, sources: [String: SourceText]) {
        var merged = Merged()
        guard case .read(let root) = content(of: file, into: &merged) else { return (nil, merged.sources) }
        return (root, merged.sources)
    }
}
