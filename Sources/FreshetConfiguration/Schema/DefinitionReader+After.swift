import FreshetPipelines

extension DefinitionReader {
    /// The most pipelines below `after`: it is read by people.
    static let mostPredecessors = 64

    /// Notes the names below `refresh.after`. Whether there are such pipelines is seen when all files are read: see
    /// ``PipelineOrder``.
    mutating func after(in section: Section) {
        let keyPath = section.path("after")
        guard let names = list("after", in: section, .pipelineName) else { return }
        if names.count > Self.mostPredecessors {
            error(
                names[Self.mostPredecessors].location, keyPath,
                "'after' has more than \(Self.mostPredecessors) pipelines")
        }
        var known: Set<String> = []
        for (name, location) in names.prefix(Self.mostPredecessors) {
            if known.insert(name).inserted {
                predecessors.append(Predecessor(name: name, location: location, keyPath: keyPath))
            } else {
                warning(location, keyPath, "\(name.quoted) stands twice", remedy: "once is enough")
            }
        }
    }

    /// What the pipeline runs after, none twice: what `refresh.after` names, and whose copies it reads.
    var predecessorNames: [String] {
        var known: Set<String> = []
        return predecessors.map(\.name).filter { known.insert($0).inserted }
    }

    /// The pipeline whose copy is a source. Its file's name is known when all files are read.
    mutating func upstream(in section: Section) -> SourceDefinition? {
        guard let name = value("pipeline", in: section, .onePipelineName), let entry = section["pipeline"] else {
            return nil
        }
        predecessors.append(
            Predecessor(name: name, location: entry.value.location, keyPath: section.path("pipeline")))
        return .copy(of: name, file: "")
    }
}

extension ValueKind where Value == String {
    fileprivate static let onePipelineName = ValueKind(name: "a pipeline's name", read: pipelineName.read)
    fileprivate static let pipelineName = ValueKind(name: "a list of pipelines' names such as [catalogue]") {
        scalar throws(ValueError) in
        guard PipelineName.fault(scalar.text) == nil else {
            throw ValueError(
                "has to name pipelines, not \(scalar.text.quoted)",
                remedy: "a pipeline's name is its file's, without the directory and '.yaml'")
        }
        return scalar.text
    }
}
