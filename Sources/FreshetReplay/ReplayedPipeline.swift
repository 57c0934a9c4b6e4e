package import FreshetPipelines

/// A pipeline of the configuration that is replayed.
package struct ReplayedPipeline: Sendable {
    /// The pipeline as the engine gets it: its own times and limits, but one request without checks and programs.
    let definition: PipelineDefinition
    /// The rows of `Signals` that it subscribes to.
    package let signals: Set<String>
    /// The row of its network target.
    package let network: String
    /// The share of random delays.
    let share: Double

    package var name: String { definition.name }

    /// - Parameters:
    ///   - definition: as configured.
    ///   - signals: the rows of `Signals` that it subscribes to.
    ///   - network: the row of its network target.
    ///   - share: this host's and pipeline's share of a random delay: 0 or more, less than 1.
    package init(_ definition: PipelineDefinition, signals: Set<String>, network: String, share: Double) {
        self.definition = Self.reduced(definition)
        self.signals = signals
        self.network = network
        self.share = share
    }

    /// A recording has the durations and outcomes of whole runs, but no content. So everything that needs content is
    /// left out, and a recorded run is one answer.
    private static func reduced(_ definition: PipelineDefinition) -> PipelineDefinition {
        var reduced = PipelineDefinition(
            name: definition.name, source: source(of: definition), refresh: definition.refresh,
            cache: CacheRules(file: definition.cache.file, maxAge: definition.cache.maxAge))
        switch definition.refresh.needsNetwork {
        // The probe itself is not recorded.
        case .bySource, .probe: reduced.refresh.needsNetwork = definition.needsNetwork ? .yes : .no
        case .yes, .no, .address: break
        }
        return reduced
    }

    /// A source with the same limit on requests, which has the name of the pipeline.
    private static func source(of definition: PipelineDefinition) -> SourceDefinition {
        guard let origin = definition.source.origin else { return .command(["/\(definition.name)"]) }
        return .http(HTTPSource(url: "\(origin)/\(definition.name)", host: "replay.invalid"))
    }

    /// The name of the pipeline with this source.
    static func name(of source: SourceDefinition) -> String {
        let text =
            switch source {
            case .http(let source): source.url
            case .command(let words): words.first ?? ""
            case .file, .copy, .joined: ""
            }
        return String(text.suffix(from: text.lastIndex(of: "/").map(text.index(after:)) ?? text.startIndex))
    }
}
