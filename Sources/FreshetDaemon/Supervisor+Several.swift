import FreshetControl
import FreshetVarlink

/// Answers for several pipelines in one job of the loop. Asked for one pipeline at a time, the supervisor would be a job of
/// its own for each, and a client that asks for all would wait for the turns of others as often.
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
        for name in names { if let one = await self.counters(of: name) { counters.append(one) } }
        return counters
    }
}
