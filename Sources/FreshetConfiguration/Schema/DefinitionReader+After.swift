extension DefinitionReader {
    /// The most pipelines below `after`: it is read by people.
    static let mostPredecessors = 64

    /// The names below `refresh.after`. Whether there are such pipelines is seen when all files are read: see
    /// ``PipelineOrder``.
    mutating func after(in section: Section) -> [String] {
        let keyPath = section.path("after")
        guard let names = list("after", in: section, .pipelineName) else { return [] }
        if names.count > Self.mostPredecessors {
            error(
                names[Self.mostPredecessors].location, keyPath,
                "'after' has more than \(Self.mostPredecessors) pipelines")
        }
        var known: Set<String> = []
        for (name, location) in names.prefix(Self.mostPredecessors) {
            if known.insert(name).inserted {
                predecessors.append(Predecessor(name: name, location: location))
            } else {
                warning(location, keyPath, "\(name.quoted) stands twice", remedy: "once is enough")
            }
        }
        return predecessors.map(\.name)
    }
}

extension ValueKind where Value == String {
    fileprivate static let pipelineName = ValueKind(name: "a list of pipelines' names such as [catalogue]") {
        scalar throws(ValueFault) in
        guard PipelineName.fault(scalar.text) == nil else {
            throw ValueFault(
                "has to name pipelines, not \(scalar.text.quoted)",
                remedy: "a pipeline's name is its file's, without the directory and '.yaml'")
        }
        return scalar.text
    }
}
