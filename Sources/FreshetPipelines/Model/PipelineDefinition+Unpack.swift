extension PipelineDefinition {
    /// The rules by which answers of its sources are unpacked, each with the configuration keys that lead to it.
    package var unpackRules: [(keys: [String], rule: UnpackRule)] { stage.unpackRules(at: ["source"]) }
}

extension StageDefinition {
    fileprivate func unpackRules(at keys: [String]) -> [(keys: [String], rule: UnpackRule)] {
        var rules = unpack.map { [(keys: keys + ["unpack"], rule: $0)] } ?? []
        if case .joined(let sources) = source {
            for source in sources { rules += source.stage.unpackRules(at: ["sources", source.name]) }
        }
        return rules + (each?.stage.unpackRules(at: keys + ["each"]) ?? [])
    }
}
