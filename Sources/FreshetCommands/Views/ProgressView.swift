import FreshetControl
import FreshetRender

/// The progress of a run, as text.
enum ProgressView {
    /// The progress from 0 to 1, by branches, else by bytes; nil if the total is unknown.
    static func fraction(_ pipeline: PipelineStatus) -> Double? {
        if let known = pipeline.knownBranches, let ended = pipeline.endedBranches, known > 0 {
            return Double(ended) / Double(known)
        }
        guard let total = pipeline.totalBytes, total > 0 else { return nil }
        return Double(pipeline.loadedBytes ?? 0) / Double(total)
    }

    /// The loaded amounts, such as `3 pages, 4 of 9 branches, 2 KiB so far`; nil if no run is in progress.
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

    /// Such as `[====>     ] 44 %`; nil if the total is unknown.
    static func bar(_ pipeline: PipelineStatus) -> String? {
        fraction(pipeline).map { "\(ProgressBar.text($0, columns: barColumns)) \(percent($0))" }
    }

    private static let barColumns = 26

    /// Whole per cent, rounded down: 100 only at the end.
    private static func percent(_ fraction: Double) -> String { "\(Int(min(1, max(0, fraction)) * 100)) %" }

    /// One line for all runs that a verb waits for.
    ///
    /// - Parameters:
    ///   - pipelines: the pipelines whose runs have not ended.
    ///   - ended: the number of runs that have ended.
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
            let wait = pipeline.waitingFor.map { "waiting for \(PipelineView.waiting($0))" }
            text += [bar(pipeline) ?? pipeline.state.rawValue, amounts(pipeline), wait].compactMap { $0 }
                .joined(separator: ", ")
        }
        return DisplayText.harmless(text)
    }
}
