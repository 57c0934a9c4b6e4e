import FreshetControl
import FreshetRender

/// How far the run of a pipeline has come, for people.
enum ProgressView {
    /// From 0 to 1, by its branches, or else by its bytes; nil: nobody knows how much is to come.
    static func fraction(_ pipeline: PipelineStatus) -> Double? {
        if let known = pipeline.knownBranches, let ended = pipeline.endedBranches, known > 0 {
            return Double(ended) / Double(known)
        }
        guard let total = pipeline.totalBytes, total > 0 else { return nil }
        return Double(pipeline.loadedBytes ?? 0) / Double(total)
    }

    /// What is there, such as `3 pages, 4 of 9 branches, 2 KiB so far`; nil: no run is under way.
    static func amounts(_ pipeline: PipelineStatus) -> String? {
        var parts: [String] = []
        if let pages = pipeline.loadedPages { parts.append(Count.text(pages, "page")) }
        if let known = pipeline.knownBranches, let ended = pipeline.endedBranches {
            parts.append("\(ended) of \(known) branches")
        }
        if let bytes = pipeline.loadedBytes {
            let total = pipeline.totalBytes.map { " of \(SizeText.bytes($0))" } ?? " so far"
            parts.append(SizeText.bytes(bytes) + total)
        }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    /// Such as `[====>     ] 44 %`; nil: nobody knows how much is to come.
    static func bar(_ pipeline: PipelineStatus) -> String? {
        fraction(pipeline).map { "\(ProgressBar.text($0, columns: barColumns)) \(percent($0))" }
    }

    private static let barColumns = 26

    /// Whole per cent; 100 only when all is there.
    private static func percent(_ fraction: Double) -> String { "\(Int(min(1, max(0, fraction)) * 100)) %" }

    /// One line for runs that are awaited.
    ///
    /// - Parameters:
    ///   - pipelines: those of which nothing came yet.
    ///   - ended: how many have ended.
    static func line(_ pipelines: [PipelineStatus], ended: Int) -> String {
        if ended == 0, pipelines.count == 1, let pipeline = pipelines.first { return line(pipeline) }
        let all = ended + pipelines.count
        guard all > 0 else { return "" }
        let names = pipelines.filter { $0.state == .loading }.map(\.name)
        let now = names.isEmpty ? "" : ", loading: " + names.joined(separator: ", ")
        return DisplayText.harmless(
            "\(ProgressBar.text(Double(ended) / Double(all), columns: barColumns)) \(ended) of "
                + Count.text(all, "pipeline") + now)
    }

    private static func line(_ pipeline: PipelineStatus) -> String {
        var text = pipeline.name + ": "
        if let reason = pipeline.waitingFor, pipeline.state == .waiting {
            text += "waiting for \(PipelineView.waiting(reason))"
        } else {
            let wait = pipeline.waitingFor.map { "waits for \(PipelineView.waiting($0))" }
            text += [bar(pipeline) ?? pipeline.state.rawValue, amounts(pipeline), wait].compactMap { $0 }
                .joined(separator: ", ")
        }
        return DisplayText.harmless(text)
    }
}
