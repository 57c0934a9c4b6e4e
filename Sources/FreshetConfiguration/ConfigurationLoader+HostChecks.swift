/// A requirement of a pipeline that the service does not meet, such as a missing credential or group. The daemon checks
/// its host environment and passes such errors to ``ConfigurationLoader/adding(_:as:in:)``.
package struct HostEnvironmentError: Hashable, Sendable {
    package var pipeline: String
    /// Whether `pipeline` is the name of a hook of several pipelines. Then the error can only be a warning.
    package var isHook: Bool
    /// The keys that lead to the value that needs it.
    package var keys: [String]
    package var message: String
    package var remedy: String?

    package init(pipeline: String, isHook: Bool = false, keys: [String], message: String, remedy: String?) {
        self.pipeline = pipeline
        self.isHook = isHook
        self.keys = keys
        self.message = message
        self.remedy = remedy
    }
}

extension ConfigurationLoader {
    /// The configuration with a diagnostic for each of these errors. If the severity is `error`, the affected pipelines
    /// are removed.
    ///
    /// Reads the files of these pipelines again to find the locations.
    package func adding(
        _ errors: [HostEnvironmentError], as severity: Diagnostic.Severity, in configuration: Configuration
    ) -> Configuration {
        var configuration = adding(
            errors.filter { !$0.isHook }.map { ($0.pipeline, [diagnostic($0, severity, in: configuration)]) },
            to: configuration)
        let ofHooks = errors.filter(\.isHook).map { diagnostic($0, .warning, in: configuration) }
        guard !ofHooks.isEmpty else { return configuration }
        configuration.diagnostics = (configuration.diagnostics + ofHooks).sorted(by: Diagnostic.areInReadingOrder)
        return configuration
    }

    private func diagnostic(
        _ error: HostEnvironmentError, _ severity: Diagnostic.Severity, in configuration: Configuration
    ) -> Diagnostic {
        let files = (error.isHook ? configuration.hookFiles[error.pipeline] : configuration.files[error.pipeline]) ?? []
        let (node, sources) = node(at: error.keys, in: files) ?? (nil, [:])
        var diagnostic = Diagnostic(
            file: node?.location.file ?? files.first ?? error.pipeline, line: node?.location.line,
            column: node?.location.column, severity: severity, keyPath: error.keys.joined(separator: "."),
            message: error.message, remedy: error.remedy)
        if let place = node?.location {
            diagnostic.excerpt = sources[place.file]?.excerpt(line: place.line, column: place.column)
        }
        return diagnostic
    }
}
