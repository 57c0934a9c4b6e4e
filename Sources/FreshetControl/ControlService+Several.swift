package import FreshetVarlink

/// Default implementations for several pipelines, which call the method for one pipeline repeatedly. An actor
/// implements them itself.
extension ControlService {
    package func pipelines(_ names: ArraySlice<String>, for peer: VarlinkPeer) async -> [PipelineStatus] {
        var statuses: [PipelineStatus] = []
        for name in names {
            guard let status = await pipeline(name) else { continue }
            statuses.append(await mayRead(name, peer) ? status : status.withholdingContent())
        }
        return statuses
    }

    package func summaries(of names: ArraySlice<String>) async -> [PipelineSummary] {
        var summaries: [PipelineSummary] = []
        for name in names { if let summary = await summary(of: name) { summaries.append(summary) } }
        return summaries
    }

    package func descriptions(of names: ArraySlice<String>) async -> [PipelineDescription] {
        var descriptions: [PipelineDescription] = []
        for name in names { if let description = await description(of: name) { descriptions.append(description) } }
        return descriptions
    }

    package func counters(of names: ArraySlice<String>) async -> [PipelineCounters] {
        var counters: [PipelineCounters] = []
        for name in names { if let one = await self.counters(of: name) { counters.append(one) } }
        return counters
    }
}
