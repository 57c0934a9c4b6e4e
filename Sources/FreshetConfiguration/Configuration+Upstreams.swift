import FreshetPipelines

extension Configuration {
    /// Tells the pipelines that read other ones' copies where these are, and who may not read theirs.
    ///
    /// - Parameter places: where the copy of each pipeline is, also of one that has faults: its copy is there still.
    mutating func connect(_ places: [(pipeline: String, place: CacheFileLocation)]) {
        guard pipelines.contains(where: { !$0.stage.upstreams.isEmpty }) else { return }
        let files = Dictionary(places.map { ($0.pipeline, $0.place.reader) }) { first, _ in first }
        for index in pipelines.indices { pipelines[index].stage.connect(files) }
        restrict()
    }

    /// What is made of a copy that is not for everybody is not for everybody either, unless its own `cache.mode` says so.
    private mutating func restrict() {
        var isRestricted = Set(pipelines.filter { $0.cacheMode & 0o004 == 0 }.map(\.name))
        var hasChanged = true
        while hasChanged {
            hasChanged = false
            for index in pipelines.indices where pipelines[index].cache.mode == nil {
                guard !isRestricted.contains(pipelines[index].name),
                    pipelines[index].stage.upstreams.contains(where: isRestricted.contains)
                else { continue }
                pipelines[index].cache.mode = 0o640
                isRestricted.insert(pipelines[index].name)
                hasChanged = true
            }
        }
    }
}

extension StageDefinition {
    fileprivate mutating func connect(_ files: [String: String]) {
        switch source {
        case .copy(let pipeline, _): source = .copy(of: pipeline, file: files[pipeline] ?? "")
        case .joined(var sources):
            for index in sources.indices { sources[index].stage.connect(files) }
            source = .joined(sources)
        case .http, .command, .file: break
        }
        each?.stage.connect(files)
    }
}
