import FreshetControl
import FreshetRender

/// The graph of `graph`: signals lead to pipelines, and pipelines to files, hooks and further pipelines.
struct PipelineGraph: Hashable, Sendable {
    /// A source that pipelines subscribe to: signals, or the new copies of a pipeline.
    struct Wire: Hashable, Sendable {
        var name: String
        /// The row of the pipeline whose new copies are the source; nil for signals.
        var origin: Int?
    }

    struct Row: Hashable, Sendable {
        var name: String
        var description: String?
        /// The state, such as `loaded; stale`.
        var state: String
        var style: Palette.Style
        /// Where the data comes from, such as the host of an origin; nil if other pipelines are the only sources.
        var origin: String?
        /// The error of the pipeline or of a hook; nil: nothing fails.
        var error: String?
        /// The keys that control how signals are gathered, such as `quiet 2s`.
        var terms: [String]
        /// The indices of the wires that the pipeline subscribes to.
        var subscriptions: Set<Int>
        var files: [String]
        /// The hooks, and path units that react to one of the files.
        var hooks: [String]
        /// Such as `from flags.example.com`.
        var from: String? { origin.map { "from \($0)" } }
        /// The wire of the pipeline's new copies, if other pipelines subscribe to them.
        var ownWire: Int?
    }

    /// Signals first, in a fixed order; then pipelines, in the order of their rows.
    var wires: [Wire] = []
    /// Each pipeline after the pipelines that it depends on.
    var rows: [Row] = []

    /// - Parameters:
    ///   - descriptions: the pipelines to draw.
    ///   - statuses: their statuses; one may be missing.
    ///   - watches: the path units of this host.
    init(_ descriptions: [PipelineDescription], _ statuses: [PipelineStatus], _ watches: [PathUnit] = []) {
        let watches = Dictionary(grouping: watches, by: \.path)
        let statuses = Dictionary(statuses.map { ($0.name, $0) }) { first, _ in first }
        let ordered = Self.inOrder(descriptions)
        let places = Dictionary(ordered.enumerated().map { ($1.name, $0) }) { first, _ in first }
        // A pipeline that is not drawn counts as a source of signals.
        func upstream(_ name: String) -> Int? { Self.pipeline(of: name).flatMap { places[$0] } }
        var indices: [String: Int] = [:]
        for name in Self.sources(ordered) where upstream(name) == nil {
            indices[name] = wires.count
            wires.append(Wire(name: name))
        }
        let upstreams = Set(ordered.flatMap { $0.inputs + $0.signals.compactMap(Self.pipeline(of:)) })
        for (row, description) in ordered.enumerated() where upstreams.contains(description.name) {
            indices["pipeline " + description.name] = wires.count
            wires.append(Wire(name: "pipeline " + description.name, origin: row))
        }
        for description in ordered {
            let sources = description.signals + description.inputs.map { "pipeline " + $0 }
            let status = statuses[description.name]
            rows.append(
                Row(
                    name: description.name, description: description.description,
                    state: description.invalid == true ? "invalid" : status.map(Self.state) ?? "unknown",
                    style: description.invalid == true
                        ? .bad : status.map { Palette.Style($0.state, $0.freshness) } ?? .plain,
                    origin: description.invalid == true ? nil : OriginText.text(of: description.source),
                    error: status?.failure?.message
                        ?? status?.hooks?.lazy.compactMap { hook in hook.error.map { "\(hook.hook): \($0)" } }.first,
                    terms: Self.terms(description), subscriptions: Set(sources.compactMap { indices[$0] }),
                    files: description.files,
                    hooks: description.hooks
                        + description.files.flatMap { watches[$0] ?? [] }.map(\.unit).reduce(into: []) { units, unit in
                            if !units.contains(unit) { units.append(unit) }
                        },
                    ownWire: indices["pipeline " + description.name].flatMap { wires[$0].origin == nil ? nil : $0 }))
        }
    }

    /// The pipeline in a source's name, such as `pipeline catalogue`.
    private static func pipeline(of source: String) -> String? {
        source.hasPrefix("pipeline ") ? String(source.dropFirst("pipeline ".count)) : nil
    }

    private static let usual = ["start", "network", "resume", "foreground", "metered", "reload", "timer", "operator"]

    /// The usual signals in their order, then the others.
    private static func sources(_ descriptions: [PipelineDescription]) -> [String] {
        let all = Set(descriptions.flatMap { $0.signals + $0.inputs.map { "pipeline " + $0 } })
        func place(_ name: String) -> Int {
            usual.firstIndex { name == $0 || name.hasPrefix($0 + " ") } ?? usual.count
        }
        return all.sorted { (place($0), $0) < (place($1), $1) }
    }

    /// Sorted by name, but each pipeline after those that it reads or runs after. A cycle, which no configuration has,
    /// is broken.
    private static func inOrder(_ descriptions: [PipelineDescription]) -> [PipelineDescription] {
        let byName = Dictionary(descriptions.map { ($0.name, $0) }) { first, _ in first }
        var result: [PipelineDescription] = []
        var visited: Set<String> = []
        func visit(_ description: PipelineDescription) {
            guard visited.insert(description.name).inserted else { return }
            for name in (description.inputs + description.signals.compactMap(pipeline(of:))).sorted() {
                if let upstream = byName[name] { visit(upstream) }
            }
            result.append(description)
        }
        for description in descriptions.sorted(by: { $0.name < $1.name }) { visit(description) }
        return result
    }

    private static func state(_ status: PipelineStatus) -> String {
        var text = status.state.rawValue
        if let reason = status.waitingFor, status.state == .waiting { text += " for \(PipelineView.waiting(reason))" }
        if let freshness = status.freshness, freshness != .fresh { text += "; \(freshness.rawValue)" }
        if status.withdrawn != nil { text += "; withdrawn" }
        return text
    }

    private static func terms(_ description: PipelineDescription) -> [String] {
        var terms: [String] = []
        func add(_ name: String, _ span: Int64?) {
            if let span, span > 0 { terms.append("\(name) \(TimeText.setting(span))") }
        }
        add("every", description.everyUSec)
        if let at = description.at { terms.append("at \(at.joined(separator: ", "))") }
        add("quiet", description.quietUSec)
        add("at-most", description.atMostUSec)
        add("fresh-for", description.freshForUSec)
        add("min-interval", description.minIntervalUSec)
        if description.whenRunning == "restart" { terms.append("when-running restart") }
        return terms
    }
}
