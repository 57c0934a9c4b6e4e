import FreshetControl
import FreshetVarlink

/// Answers requests for several pipelines in one job of the loop. With one job per pipeline, a client that requests all
/// pipelines would wait for other jobs before each of them.
extension Supervisor {
    func pipelines(_ names: ArraySlice<String>, for peer: VarlinkPeer) async -> [PipelineStatus] {
        var statuses: [PipelineStatus] = []
        for name in names {
            guard let status = await pipeline(name) else { continue }
            statuses.append(await mayRead(name, peer) ? status : status.withholdingContent())
        }
        return statuses
    }

    func summaries(of names: ArraySlice<String>) async -> [PipelineSummary] {
        var summaries: [PipelineSummary] = []
        for name in names { if let summary = await summary(of: name) { summaries.append(summary) } }
        return summaries
    }

    func descriptions(of names: ArraySlice<String>) async -> [PipelineDescription] {
        var descriptions: [PipelineDescription] = []
        for name in names { if let description = await description(of: name) { descriptions.append(description) } }
        return descriptions
    }

    func counters(of names: ArraySlice<String>) async -> [PipelineCounters] {
        var counters: [PipelineCounters] = []
        for name in names { if let values = await self.counters(of: name) { counters.append(values) } }
        return counters
    }
}
