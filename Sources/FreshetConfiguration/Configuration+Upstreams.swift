import FreshetPipelines

extension Configuration {
    /// Sets the file names of copies that are sources of other pipelines, and restricts the copies that are made of
    /// restricted ones.
    ///
    /// - Parameter places: where the copy of each pipeline is. An invalid pipeline is included: its copy still exists.
    mutating func connect(_ places: @autoclosure () -> [(pipeline: String, place: CacheFileLocation)]) {
        guard pipelines.contains(where: { !$0.stage.upstreams.isEmpty }) else { return }
        let files = Dictionary(places().map { ($0.pipeline, $0.place.reader) }) { first, _ in first }
        for index in pipelines.indices { pipelines[index].stage.connect(files) }
        restrict()
    }

    /// Makes a copy unreadable for others if one of its upstream copies is, unless the pipeline has its own
    /// `cache.mode`.
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
