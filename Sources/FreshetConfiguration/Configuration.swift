package import FreshetPipelines

/// The configuration that all files together define, with its errors and warnings.
///
/// At start the valid pipelines run, and each invalid pipeline fails alone. A reload accepts a configuration only if it
/// ``isValid``.
package struct Configuration: Sendable {
    package var daemon: DaemonDefinition
    /// The pipelines without errors, by name.
    package var pipelines: [PipelineDefinition]
    /// The pipelines with errors, with the errors and warnings of each.
    package var invalid: [String: [Diagnostic]]
    /// Errors and warnings of the daemon's own files, and of directories that cannot be read and may contain pipelines.
    package var daemonDiagnostics: [Diagnostic]
    /// All errors and warnings, in reading order.
    package var diagnostics: [Diagnostic]
    /// The files of each pipeline, also of invalid ones: the pipeline's own file first, then its drop-ins in the order
    /// in which they were merged.
    package var files: ConfigurationFiles
    /// The files of ``daemon``, in the same order.
    package var daemonFiles: [String]
    /// The hooks of several pipelines without errors, by name.
    package var hooks: [SharedHookDefinition] = []
    /// The hooks of several pipelines with errors, with the errors and warnings of each. They do not run.
    package var invalidHooks: [String: [Diagnostic]] = [:]
    /// The files of each hook of several pipelines, also of invalid ones.
    package var hookFiles: [String: [String]] = [:]

    package init(
        daemon: DaemonDefinition = DaemonDefinition(), pipelines: [PipelineDefinition] = [],
        invalid: [String: [Diagnostic]] = [:], daemonDiagnostics: [Diagnostic] = [], diagnostics: [Diagnostic] = [],
        files: ConfigurationFiles = [:], daemonFiles: [String] = []
    ) {
        self.daemon = daemon
        self.pipelines = pipelines
        self.invalid = invalid
        self.daemonDiagnostics = daemonDiagnostics
        self.diagnostics = diagnostics
        self.files = files
        self.daemonFiles = daemonFiles
    }

    /// Whether there are no errors. Warnings are allowed.
    package var isValid: Bool { !diagnostics.contains { $0.severity == .error } }
    /// Whether the daemon can run with the valid pipelines.
    package var isDaemonValid: Bool { !daemonDiagnostics.contains { $0.severity == .error } }

    /// The names of the hooks of several pipelines that are new, changed or gone since another configuration; nil if
    /// there are none.
    package func changedHooks(from old: Configuration) -> [String]? {
        let (before, now) = (old.hooks.map { ($0.name, $0) }, hooks.map { ($0.name, $0) })
        let known = Dictionary(before) { first, _ in first }
        let current = Dictionary(now) { first, _ in first }
        let names = Set(known.keys).union(current.keys).filter { known[$0] != current[$0] }.sorted()
        return names.isEmpty ? nil : names
    }

    /// The changes that a reload has to make to replace another configuration with this one.
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

/// The difference between two configurations. Each list is in the order of the names.
package struct ConfigurationDifference: Hashable, Sendable {
    package var isDaemonChanged: Bool
    package var added: [PipelineDefinition] = []
    /// The changed pipelines with their new definitions.
    package var changed: [PipelineDefinition] = []
    package var removed: [String] = []
    package var unchanged: [String] = []

    /// Whether the configurations are equal.
    package var isEmpty: Bool { !isDaemonChanged && added.isEmpty && changed.isEmpty && removed.isEmpty }
}
