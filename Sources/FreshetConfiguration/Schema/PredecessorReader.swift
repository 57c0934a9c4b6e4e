import FreshetPipelines

/// Reads the pipelines after which a pipeline runs, or whose copies it reads.
struct PredecessorReader {
    let reader: DefinitionReader

    /// How many pipelines `after` may name.
    static let maximumPredecessors = 64

    /// Records the names in `refresh.after`. ``PipelineOrder`` checks whether these pipelines exist after all files are
    /// read.
    func after(in section: Section) {
        let keyPath = section.path("after")
        guard let names = reader.list("after", in: section, .pipelineName) else { return }
        if names.count > Self.maximumPredecessors {
            reader.addError(
                names[Self.maximumPredecessors].location, keyPath,
                "'after' names more than \(Self.maximumPredecessors) pipelines")
        }
        var known: Set<String> = []
        for (name, location) in names.prefix(Self.maximumPredecessors) {
            if known.insert(name).inserted {
                reader.predecessors.append(Predecessor(name: name, location: location, keyPath: keyPath))
            } else {
                reader.warning(location, keyPath, "'after' names \(name.quoted) twice", remedy: "remove one of them")
            }
        }
    }

    /// A source that is the copy of another pipeline. Its file name is filled in after all files are read.
    func upstream(in section: Section) -> SourceDefinition? {
        guard let name = reader.value("pipeline", in: section, .onePipelineName), let entry = section["pipeline"] else {
            return nil
        }
        reader.predecessors.append(
            Predecessor(name: name, location: entry.value.location, keyPath: section.path("pipeline")))
        return .copy(of: name, file: "")
    }
}

extension ValueKind where Value == String {
    fileprivate static let onePipelineName = ValueKind(name: "a pipeline name", read: pipelineName.read)
    static let pipelineName = ValueKind(name: "a list of pipeline names such as [catalogue]") {
        scalar throws(ValueError) in
        guard PipelineName.error(scalar.text) == nil else {
            throw ValueError(
                "has to contain pipeline names, not \(scalar.text.quoted)",
                remedy: "a pipeline has the name of its file, without the directory and '.yaml'")
        }
        return scalar.text
    }
}
