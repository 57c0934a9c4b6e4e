import FreshetPipelines

/// Reads a configuration from the files of a search path.
///
///     let path = SearchPath(flags: flags, configurationDirectory: environment["CONFIGURATION_DIRECTORY"])
///     let configuration = ConfigurationLoader(searchPath: path).load()
///     for diagnostic in configuration.diagnostics { print(diagnostic.text()) }
///
/// `load()` reads files and so blocks. It does not throw: the returned configuration contains all errors.
package struct ConfigurationLoader: Sendable {
    /// The format that this version reads.
    static let format = "1"
    /// How many errors and warnings of one pipeline are reported; more of them would not help a user.
    package static let maximumDiagnostics = 100

    package let searchPath: SearchPath
    let context: LoadContext
    var fileSystem: any ConfigurationFileSystem

    package init(
        searchPath: SearchPath, context: LoadContext = LoadContext(),
        fileSystem: any ConfigurationFileSystem = HostFileSystem()
    ) {
        self.searchPath = searchPath
        self.context = context
        self.fileSystem = fileSystem
    }

    /// Reads all files.
    package func load() -> Configuration {
        let load = ConfigurationLoad(with: self)
        return load.configuration(of: load.pipelines(in: 0..<load.count))
    }

    /// Reads the files of one pipeline.
    ///
    /// - Parameter memory: what was read of other pipelines.
    func pipeline(_ group: FileSearch.Group, remembering memory: ReadingMemory? = nil) -> PipelineFiles {
        var files = PipelineFiles(name: group.name)
        if let error = PipelineName.error(group.name) {
            let file = group.file ?? group.name
            files.files = [file]
            files.errors = [Diagnostic(file: file, message: error.message, remedy: error.remedy)]
            return files
        }
        let merged = read(group, files: &files.files, remembering: memory)
        let hasOtherCharacters = merged.sources.values.contains(where: \.mayHaveOtherCharacters)
        // Without the drop-in that could not be read, a section may lack keys that no error reports.
        let isKnowable = !hasOtherCharacters && !merged.isIncomplete
        let reader = DefinitionReader(
            isIncomplete: merged.isIncomplete, context: context, memory: isKnowable ? memory : nil)
        let result = merged.root.map { PipelineReader(reader: reader).pipeline(named: group.name, from: $0) }
        var definition = result?.definition
        if let root = merged.root, hasOtherCharacters {
            definition?.exactTexts = ExactTexts(of: root)
        }
        if let template = reader.template {
            definition?.template?.text = readTemplate(template.file, reader, at: template.location) ?? ""
        }
        // The places of secrets, which excerpts must not show, are known only after parsing.
        if merged.isUnparsed, !merged.errors.isEmpty || !reader.errors.isEmpty { return pipeline(group) }
        files.errors = withExcerpts(limited(merged.errors + reader.errors), from: merged.sources)
        (files.definition, files.cacheFile, files.predecessors) = (
            definition, result?.cacheFile, reader.predecessors
        )
        files.hookLimits = reader.hookLimits
        return files
    }

    /// Reads the files of a hook of several pipelines.
    func hook(_ group: FileSearch.Group) -> SharedHookFiles {
        var files = SharedHookFiles(name: group.name)
        if let error = PipelineName.error(group.name, of: "hook") {
            let file = group.file ?? group.name
            files.files = [file]
            files.errors = [Diagnostic(file: file, message: error.message, remedy: error.remedy)]
            return files
        }
        let merged = read(group, files: &files.files)
        let reader = DefinitionReader(isIncomplete: merged.isIncomplete, context: context)
        let result = merged.root.map { SharedHookReader(reader: reader).hook(named: group.name, from: $0) }
        files.errors = withExcerpts(limited(merged.errors + reader.errors), from: merged.sources)
        files.hookLimits = reader.hookLimits
        files.definition = result?.definition
        if let root = merged.root { files.definition?.exactTexts = ExactTexts(of: root) }
        files.pipelines = result?.pipelines ?? []
        files.sources = merged.sources
        return files
    }

    /// How many unknown names of a hook get a suggestion: each is compared with all pipelines.
    private static let maximumSuggestions = 16

    /// Adds an error for each named pipeline that does not exist.
    func checkNames(in hook: inout SharedHookFiles, among pipelines: Set<String>) {
        let unknown = hook.pipelines.filter { !pipelines.contains($0.name) }
        guard !unknown.isEmpty else { return }
        let errors = unknown.enumerated().map { index, name in
            let near =
                index < Self.maximumSuggestions ? PipelineOrder.nearest(to: name.name, among: pipelines) : nil
            return Diagnostic(
                at: name.location, keyPath: "on-change-of", message: "there is no pipeline \(name.name.quoted)",
                remedy: near.map { "did you mean '\($0)'?" } ?? "'on-change-of' takes the names of pipelines")
        }
        hook.errors += withExcerpts(limited(errors), from: hook.sources)
    }

    /// Reads the files of the daemon.
    func daemon(_ group: FileSearch.Group) -> (definition: DaemonDefinition?, files: [String], errors: [Diagnostic]) {
        var files: [String] = []
        let merged = read(group, files: &files)
        let reader = DefinitionReader(isIncomplete: merged.isIncomplete)
        var definition = merged.root.map { DaemonReader(reader: reader).daemon(from: $0) }
        if let root = merged.root {
            definition?.exactTexts = ExactTexts(of: root)
            if case .mapping(let entries) = root.content, let fleet = entries.first(where: { $0.key == "fleet" }) {
                definition?.fleet?.exactTexts = ExactTexts(of: fleet.value)
            }
        }
        return (definition, files, withExcerpts(limited(merged.errors + reader.errors), from: merged.sources))
    }

    /// An error that is found only after all files were read, with the text at its place, which is read again.
    func withExcerpt(_ error: Diagnostic) -> Diagnostic {
        withExcerpts([error], from: tree(of: error.file).sources).first ?? error
    }

    // MARK: Files into one tree

    /// A file merged with its drop-ins.
    private struct Merged {
        /// Nil if the file itself is masked, absent or could not be read.
        var root: Node?
        var sources: [String: SourceText] = [:]
        var errors: [Diagnostic] = []
        /// Whether a drop-in could not be read.
        var isIncomplete = false
        /// Whether the tree of a file is that of another one with other values.
        var isUnparsed = false
        var memory: ReadingMemory?
    }

    private func read(
        _ group: FileSearch.Group, files: inout [String], remembering memory: ReadingMemory? = nil
    ) -> Merged {
        var merged = Merged(memory: memory)
        if let file = group.file {
            switch content(of: file, into: &merged) {
            case .masked, .absent:
                // Without its file, the daemon's drop-ins change the defaults.
                guard group.isDaemon else { return merged }
                merged.root = Self.nothing(in: file)
            case .read(let root):
                files.append(file)
                merged.root = root
            case .invalid:
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
            case .invalid:
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
        case masked, absent, invalid
        case read(Node)
    }

    private func content(of file: String, into merged: inout Merged) -> Content {
        do throws(FileError) {
            switch try fileSystem.content(ofFile: file, limit: SourceText.maximumSize) {
            case .masked: return .masked
            case .absent: return .absent
            case .bytes(let bytes):
                let source = SourceText(file: file, bytes: bytes)
                if let root = merged.memory?.root(of: source) {
                    merged.sources[file] = source
                    merged.isUnparsed = true
                    return withoutFormat(root, into: &merged).map { .read($0) } ?? .invalid
                }
                let result = YAMLReader.read(source, remembering: merged.memory)
                merged.sources[file] = result.source
                merged.errors += result.errors
                guard let root = result.root else { return .invalid }
                return withoutFormat(root, into: &merged).map { .read($0) } ?? .invalid
            }
        } catch {
            merged.errors.append(Diagnostic(file: file, message: error.message, remedy: error.remedy))
            return .invalid
        }
    }

    /// The tree without its `format`, which each file has for itself; nil, with an error, if the format is not
    /// supported.
    private func withoutFormat(_ root: Node, into merged: inout Merged) -> Node? {
        guard case .mapping(var entries) = root.content,
            let index = entries.firstIndex(where: { $0.key == "format" })
        else { return root }
        let entry = entries.remove(at: index)
        guard case .scalar(let scalar) = entry.value.content, scalar.text == Self.format else {
            let isNumber = if case .scalar(let scalar) = entry.value.content { UInt(scalar.text) != nil } else { false }
            merged.errors.append(
                Diagnostic(
                    at: entry.value.location, keyPath: "format",
                    message: isNumber
                        ? "this version reads only format \(Self.format)" : "'format' has to be \(Self.format)",
                    remedy: isNumber
                        ? "the file is for another version of Freshet: install that version, or change the file" : nil))
            return nil
        }
        return Node(content: .mapping(entries), location: root.location)
    }

    // MARK: Errors

    private func limited(_ errors: [Diagnostic]) -> [Diagnostic] {
        guard errors.count > Self.maximumDiagnostics, let last = errors.last else { return errors }
        let sorted = errors.sorted(by: Diagnostic.areInReadingOrder)
        let hidden = sorted.dropFirst(Self.maximumDiagnostics)
        let rest = Diagnostic(
            file: last.file, severity: hidden.contains { $0.severity == .error } ? .error : .warning,
            message: "\(hidden.count) more errors and warnings are not shown",
            remedy: "correct the errors above first")
        return sorted.prefix(Self.maximumDiagnostics) + [rest]
    }

    private func withExcerpts(_ errors: [Diagnostic], from sources: [String: SourceText]) -> [Diagnostic] {
        errors.map { error in
            guard let line = error.line, let column = error.column else { return error }
            var error = error
            error.excerpt = sources[error.file]?.excerpt(line: line, column: column)
            return error
        }
    }

    /// Reads one file again, without its drop-ins. The tree is nil if the file is invalid or no longer exists.
    func tree(of file: String) -> (root: Node?, sources: [String: SourceText]) {
        var merged = Merged()
        guard case .read(let root) = content(of: file, into: &merged) else { return (nil, merged.sources) }
        return (root, merged.sources)
    }
}
