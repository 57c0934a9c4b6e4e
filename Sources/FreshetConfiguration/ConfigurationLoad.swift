import FreshetPipelines

/// One load of a configuration, in steps, so that several threads can read the files of pipelines.
/// ``ConfigurationLoader/load()`` takes the steps one after another.
///
///     let load = ConfigurationLoad(with: loader)
///     let configuration = load.configuration(of: load.pipelines(in: 0..<load.count))
///
/// Every step reads files and so blocks.
package struct ConfigurationLoad: Sendable {
    private let loader: ConfigurationLoader
    private let groups: [FileSearch.Group]
    private let hooks: [FileSearch.Group]
    private let own: (definition: DaemonDefinition?, files: [String], errors: [Diagnostic])
    private let errors: [Diagnostic]

    /// Finds the files, and reads those of the daemon.
    package init(with loader: ConfigurationLoader) {
        var loader = loader
        loader.fileSystem = loader.fileSystem.forOneLoad()
        self.loader = loader
        var search = FileSearch(searchPath: loader.searchPath, fileSystem: loader.fileSystem)
        groups = search.findPipelines()
        hooks = search.findHooks()
        own = loader.daemon(search.findDaemon())
        errors = search.errors
    }

    /// What `freshet.yaml` and its drop-ins define; nil if there are errors in them.
    package var daemon: DaemonDefinition? {
        (errors + own.errors).contains { $0.severity == .error } ? nil : own.definition ?? DaemonDefinition()
    }

    /// The number of pipelines that have a file.
    package var count: Int { groups.count }

    /// Reads the files of some pipelines. Any threads may call this at the same time.
    package func pipelines(in range: Range<Int>) -> [PipelineFiles] {
        pipelines(in: range, remembering: ReadingMemory())
    }

    /// - Parameter memory: what this thread has read of other pipelines.
    func pipelines(in range: Range<Int>, remembering memory: ReadingMemory) -> [PipelineFiles] {
        groups[range].map { group in
            var pipeline = loader.pipeline(group, remembering: memory)
            // Files that follow one another often differ only in their source. If the rest were kept until all files
            // are read, freeing it would leave gaps in this thread's memory that nothing else fills.
            if let last = memory.last { pipeline.definition?.share(with: last) }
            memory.last = pipeline.definition ?? memory.last
            return pipeline
        }
    }

    /// Makes the configuration.
    ///
    /// - Parameter pipelines: what was read of all pipelines, in their order.
    package func configuration(of pipelines: [PipelineFiles]) -> Configuration {
        configuration(ofPieces: [pipelines])
    }

    /// - Parameter pieces: what was read of all pipelines, in several arrays.
    func configuration(ofPieces pieces: [[PipelineFiles]]) -> Configuration {
        var configuration = Configuration()
        configuration.daemonFiles = own.files
        if let definition = own.definition { configuration.daemon = definition }
        configuration.daemonDiagnostics = (errors + own.errors).sorted(by: Diagnostic.areInReadingOrder)

        var byName: [String: [Diagnostic]] = [:]
        // Most files have one owner. Its place is the piece and the index in it.
        var cacheFiles: [String: (piece: Int, index: Int)] = [:]
        var sharedFiles: [String: [(pipeline: String, place: CacheFileLocation)]] = [:]
        func owner(at place: (piece: Int, index: Int)) -> (pipeline: String, place: CacheFileLocation)? {
            let pipeline = pieces[place.piece][place.index]
            return pipeline.cacheFile.map { (pipeline.name, $0) }
        }
        var hookLimits: [(owner: LocatedHookLimit.Owner, place: LocatedHookLimit)] = []
        var order = PipelineOrder()
        // A pipeline without files and errors is masked, or was removed since its directory was listed.
        let count = pieces.reduce(0) { $0 + $1.count }
        configuration.files.reserveCapacity(count)
        configuration.pipelines.reserveCapacity(count)
        cacheFiles.reserveCapacity(count)
        for (piece, pipelines) in pieces.enumerated() {
            for (index, pipeline) in pipelines.enumerated() where !pipeline.files.isEmpty || !pipeline.errors.isEmpty {
                configuration.files[pipeline.name] = pipeline.files
                order.add(pipeline.name, after: pipeline.predecessors)
                hookLimits += pipeline.hookLimits.map { (.pipeline(pipeline.name), $0) }
                if let read = pipeline.definition {
                    var definition = configuration.daemon.applyingDefaults(to: read)
                    // The daemon's defaults have changed what was shared.
                    if let last = configuration.pipelines.last { definition.share(with: last) }
                    configuration.pipelines.append(definition)
                }
                if !pipeline.errors.isEmpty { byName[pipeline.name] = pipeline.errors }
                guard let cacheFile = pipeline.cacheFile else { continue }
                for name in cacheFile.names {
                    guard let first = cacheFiles.updateValue((piece, index), forKey: name) else { continue }
                    cacheFiles[name] = first
                    sharedFiles[name, default: owner(at: first).map { [$0] } ?? []].append((pipeline.name, cacheFile))
                }
            }
        }
        // Two pipelines with the same directory name have the same stamp name too: one error is enough.
        for (file, owners) in sharedFiles where owners.contains(where: { $0.place.names.first == file }) {
            for (index, owner) in owners.enumerated() {
                let other = owners[index == 0 ? 1 : 0]
                let error = Diagnostic(
                    at: owner.place.location, keyPath: "cache.file",
                    message: "\(file.quoted) is also the cache file of pipeline '\(other.pipeline)'",
                    remedy: "give each pipeline its own 'cache.file'", related: other.place.location)
                byName[owner.pipeline, default: []].append(loader.withExcerpt(error))
            }
        }
        var hooks = self.hooks.isEmpty ? [] : readHooks(among: Set(configuration.files.names))
        for hook in hooks { hookLimits += hook.hookLimits.map { (.hook(hook.name), $0) } }
        for (owner, error) in LocatedHookLimit.conflicts(among: hookLimits) {
            let error = loader.withExcerpt(error)
            switch owner {
            case .pipeline(let name): byName[name, default: []].append(error)
            case .hook(let name):
                for index in hooks.indices where hooks[index].name == name { hooks[index].errors.append(error) }
            }
        }
        for (name, error) in order.errors(among: configuration.files.names) {
            byName[name, default: []].append(loader.withExcerpt(error))
        }
        configuration.invalid = byName.filter { $0.value.contains { $0.severity == .error } }
            .mapValues { $0.sorted(by: Diagnostic.areInReadingOrder) }
        if !configuration.invalid.isEmpty {
            configuration.pipelines.removeAll { configuration.invalid[$0.name] != nil }
        }
        configuration.connect(cacheFiles.compactMap { sharedFiles[$0.key] == nil ? owner(at: $0.value) : nil })
        configuration.add(hooks)
        configuration.diagnostics =
            (configuration.daemonDiagnostics + byName.values.joined() + hooks.flatMap(\.errors))
            .sorted(by: Diagnostic.areInReadingOrder)
        return configuration
    }

    /// Reads the files of all hooks of several pipelines. A masked hook is left out.
    private func readHooks(among pipelines: Set<String>) -> [SharedHookFiles] {
        hooks.compactMap { group in
            var hook = loader.hook(group)
            guard !hook.files.isEmpty || !hook.errors.isEmpty else { return nil }
            loader.checkNames(in: &hook, among: pipelines)
            hook.sources = [:]
            return hook
        }
    }
}

extension Configuration {
    fileprivate mutating func add(_ all: [SharedHookFiles]) {
        for hook in all {
            hookFiles[hook.name] = hook.files
            if hook.errors.contains(where: { $0.severity == .error }) {
                invalidHooks[hook.name] = hook.errors.sorted(by: Diagnostic.areInReadingOrder)
            } else if let definition = hook.definition {
                hooks.append(definition)
            }
        }
    }
}

/// What the files of one hook of several pipelines define.
struct SharedHookFiles: Sendable {
    var name: String
    /// Nil if the file is masked, or has errors.
    var definition: SharedHookDefinition?
    var pipelines: [LocatedPipelineName] = []
    var hookLimits: [LocatedHookLimit] = []
    var errors: [Diagnostic] = []
    /// The files that were read.
    var files: [String] = []
    /// Their texts, until all errors are found.
    var sources: [String: SourceText] = [:]

    init(name: String) { self.name = name }
}

/// What the files of one pipeline define.
package struct PipelineFiles: Sendable {
    var name: String
    /// Nil if the file is masked, or has errors.
    var definition: PipelineDefinition?
    var cacheFile: CacheFileLocation?
    var predecessors: [Predecessor] = []
    var hookLimits: [LocatedHookLimit] = []
    var errors: [Diagnostic] = []
    /// The files that were read.
    var files: [String] = []

    init(name: String) { self.name = name }
}
