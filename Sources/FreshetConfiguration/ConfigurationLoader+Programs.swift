package import FreshetPipelines

/// A jq program that does not compile. The daemon compiles the programs, since this module does not link libjq, and
/// passes the errors to ``ConfigurationLoader/addingProgramErrors(_:in:)``.
package struct ProgramError: Hashable, Sendable {
    package var pipeline: String
    package var program: String
    /// The error message of jq.
    package var message: String

    package init(pipeline: String, program: String, message: String) {
        self.pipeline = pipeline
        self.program = program
        self.message = message
    }
}

/// A jq program of a configuration.
package struct ProgramText: Hashable, Sendable {
    package var text: String
    /// The names of the variables, which the program may use as `$name`.
    package var variables: [String]

    package init(_ text: String, variables: [String] = []) {
        self.text = text
        self.variables = variables
    }
}

extension PipelineDefinition {
    /// The jq programs of the pipeline.
    package var programs: [ProgramText] {
        let whole = [transform].compactMap(\.self) + cache.files.map(\.program) + check.programs
        return stage.programs(among: []) + whole.map { ProgramText($0) }
    }
}

extension StageDefinition {
    fileprivate func programs(among names: [String]) -> [ProgramText] {
        let own = ((pages?.programs ?? []) + [transform, each?.key].compactMap(\.self)).map {
            ProgramText($0, variables: names)
        }
        let joined =
            if case .joined(let sources) = source { sources.flatMap { $0.stage.programs(among: names) } } else {
                [ProgramText]()
            }
        guard let each else { return own + joined }
        return own + joined + each.stage.programs(among: names + [JQVariable.name(each.name)])
    }
}

extension ConfigurationLoader {
    /// The keys whose values are jq programs in every section.
    private static let programKeys: Set<String> = Set([
        "transform", "combine", "jq", "key", "items", "valid-until", "made-at",
    ]).union(
        PagesDefinition.programKeys)

    /// The configuration without the pipelines whose programs have errors, and with a diagnostic for each error.
    ///
    /// Reads the files of these pipelines again to find the locations: `load()` does not keep them.
    package func addingProgramErrors(_ errors: [ProgramError], in configuration: Configuration) -> Configuration {
        adding(
            errors.map { ($0.pipeline, diagnostics(of: $0, files: configuration.files[$0.pipeline] ?? [])) },
            to: configuration)
    }

    /// The configuration with further diagnostics, and without the pipelines that have errors among them.
    func adding(_ additions: [(pipeline: String, [Diagnostic])], to configuration: Configuration) -> Configuration {
        var configuration = configuration
        for (pipeline, diagnostics) in additions {
            configuration.diagnostics += diagnostics
            let isInvalid = diagnostics.contains { $0.severity == .error } || configuration.invalid[pipeline] != nil
            if isInvalid { configuration.invalid[pipeline, default: []] += diagnostics }
            configuration.invalid[pipeline]?.sort(by: Diagnostic.areInReadingOrder)
        }
        configuration.pipelines.removeAll { configuration.invalid[$0.name] != nil }
        configuration.diagnostics.sort(by: Diagnostic.areInReadingOrder)
        return configuration
    }

    /// A diagnostic for each location of the program.
    private func diagnostics(of error: ProgramError, files: [String]) -> [Diagnostic] {
        var diagnostics: [Diagnostic] = []
        // The value of the last file takes effect; the same program may also be in a file that a later one overrides.
        for file in files.reversed() where diagnostics.isEmpty {
            let (root, sources) = tree(of: file)
            for (keys, node) in root?.scalars(below: Self.programKeys) ?? [] {
                guard case .scalar(let scalar) = node.content, scalar.text == error.program else { continue }
                var diagnostic = Diagnostic(
                    at: node.location, keyPath: keys.joined(separator: "."),
                    message: "'\(keys.last ?? "")' is not a valid jq program",
                    quotation: error.message)
                diagnostic.excerpt = sources[node.location.file]?.excerpt(
                    line: node.location.line, column: node.location.column)
                diagnostics.append(diagnostic)
            }
        }
        guard diagnostics.isEmpty else { return diagnostics }
        // The files have changed since they were read.
        return [
            Diagnostic(
                file: files.first ?? error.pipeline, message: "a jq program is not valid", quotation: error.message)
        ]
    }

    /// The node at these keys in a pipeline's files; nil if there is no such node.
    func node(at keys: [String], in files: [String]) -> (node: Node, sources: [String: SourceText])? {
        // The value of the last file takes effect.
        for file in files.reversed() {
            let (root, sources) = tree(of: file)
            if let node = root?.node(at: keys[...]) { return (node, sources) }
        }
        return nil
    }
}

extension Node {
    /// The scalars at one of these keys, at any depth, each with all keys that lead to it.
    fileprivate func scalars(below names: Set<String>, path: [String] = []) -> [(keys: [String], node: Node)] {
        guard case .mapping(let entries) = content else { return [] }
        return entries.flatMap { entry -> [(keys: [String], node: Node)] in
            let keys = path + [entry.key]
            if case .scalar = entry.value.content {
                // Below `cache.files` the keys are file names, not keys of the format.
                let isProgram = names.contains(entry.key) || path == ["cache", "files"]
                return isProgram ? [(keys, entry.value)] : []
            }
            return entry.value.scalars(below: names, path: keys)
        }
    }

    /// The node at these keys; nil if there is no such node. In a list, the key is the index of an element, from 0.
    fileprivate func node(at keys: ArraySlice<String>) -> Node? {
        guard let key = keys.first else { return self }
        if case .sequence(let nodes) = content, let index = Int(key), nodes.indices.contains(index) {
            return nodes[index].node(at: keys.dropFirst())
        }
        guard case .mapping(let entries) = content else { return nil }
        return entries.first { $0.key == key }?.value.node(at: keys.dropFirst())
    }
}
