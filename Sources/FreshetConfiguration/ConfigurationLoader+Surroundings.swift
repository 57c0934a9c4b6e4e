/// Something that a pipeline needs and the service does not have: a credential, a group. Whoever knows the service's
/// surroundings finds that out: see ``ConfigurationLoader/noting(_:as:in:)``.
package struct HostEnvironmentError: Hashable, Sendable {
    package var pipeline: String
    /// The keys that lead to the value that it is about.
    package var keys: [String]
    package var message: String
    package var remedy: String?

    package init(pipeline: String, keys: [String], message: String, remedy: String?) {
        self.pipeline = pipeline
        self.keys = keys
        self.message = message
        self.remedy = remedy
    }
}

extension ConfigurationLoader {
    /// The configuration with a diagnostic for each fault, and, if these are errors, without the pipelines that have
    /// them.
    ///
    /// Reads the files of these pipelines again, for the places.
    package func noting(
        _ faults: [HostEnvironmentError], as severity: Diagnostic.Severity, in configuration: Configuration
    ) -> Configuration {
        adding(
            faults.map { fault in
                let files = configuration.files[fault.pipeline] ?? []
                let (node, sources) = node(at: fault.keys, in: files) ?? (nil, [:])
                var diagnostic = Diagnostic(
                    file: node?.location.file ?? files.first ?? fault.pipeline, line: node?.location.line,
                    column: node?.location.column, severity: severity, keyPath: fault.keys.joined(separator: "."),
                    message: fault.message, remedy: fault.remedy)
                if let place = node?.location {
                    diagnostic.excerpt = sources[place.file]?.excerpt(line: place.line, column: place.column)
                }
                return (fault.pipeline, [diagnostic])
            }, to: configuration)
    }
}
