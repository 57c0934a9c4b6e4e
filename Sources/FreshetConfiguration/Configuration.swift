package import FreshetPipelines

/// What all files together say, and what is wrong with them.
///
/// At start the sound pipelines run and each faulty one fails alone; a reload takes a configuration only if it
/// ``isSound``.
package struct Configuration: Sendable {
    package var daemon: DaemonDefinition
    /// The pipelines without errors, by name.
    package var pipelines: [PipelineDefinition]
    /// The pipelines with errors, and all that is wrong with each.
    package var faulty: [String: [Diagnostic]]
    /// What is wrong with the daemon's own files, or with directories that may hold pipelines nobody can know of.
    package var daemonDiagnostics: [Diagnostic]
    /// Every fault, in reading order.
    package var diagnostics: [Diagnostic]
    /// The files that make each pipeline, faulty ones included: its own first, then its drop-ins in the order in which
    /// they were laid over it.
    package var files: [String: [String]]
    /// The files that make ``daemon``, in the same order.
    package var daemonFiles: [String]

    package init(
        daemon: DaemonDefinition = DaemonDefinition(), pipelines: [PipelineDefinition] = [],
        faulty: [String: [Diagnostic]] = [:], daemonDiagnostics: [Diagnostic] = [], diagnostics: [Diagnostic] = [],
        files: [String: [String]] = [:], daemonFiles: [String] = []
    ) {
        self.daemon = daemon
        self.pipelines = pipelines
        self.faulty = faulty
        self.daemonDiagnostics = daemonDiagnostics
        self.diagnostics = diagnostics
        self.files = files
        self.daemonFiles = daemonFiles
    }

    /// There are no errors; warnings there may be.
    package var isSound: Bool { !diagnostics.contains { $0.severity == .error } }
    /// The daemon can run, with whatever pipelines are sound.
    package var isDaemonSound: Bool { !daemonDiagnostics.contains { $0.severity == .error } }

    /// What a reload has to do to get here from another configuration.
    package func difference(from old: Configuration) -> ConfigurationDifference {
        var difference = ConfigurationDifference(isDaemonChanged: daemon != old.daemon)
        let before = Dictionary(old.pipelines.map { ($0.name, $0) }) { first, _ in first }
        let now = Set(pipelines.map(\.name))
        for pipeline in pipelines {
            switch before[pipeline.name] {
            case nil: difference.added.append(pipeline)
            case pipeline: difference.unchanged.append(pipeline.name)
            default: difference.changed.append(pipeline)
            }
        }
        difference.removed = old.pipelines.map(\.name).filter { !now.contains($0) }
        return difference
    }
}

/// How two configurations differ. Each list is in the order of the names.
package struct ConfigurationDifference: Hashable, Sendable {
    package var isDaemonChanged: Bool
    package var added: [PipelineDefinition] = []
    /// As they are now.
    package var changed: [PipelineDefinition] = []
    package var removed: [String] = []
    package var unchanged: [String] = []

    package init(isDaemonChanged: Bool) {
        self.isDaemonChanged = isDaemonChanged
    }

    /// Nothing has to be done.
    package var isEmpty: Bool { !isDaemonChanged && added.isEmpty && changed.isEmpty && removed.isEmpty }
}
