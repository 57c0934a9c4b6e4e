package import FreshetPipelines

/// A jq program that does not compile. Whoever has libjq finds that out: see ``ConfigurationLoader/refusing(_:in:)``.
package struct ProgramError: Hashable, Sendable {
    package var pipeline: String
    package var program: String
    /// jq's words.
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
    /// The names that it may use as `$name`.
    package var variables: [String]

    package init(_ text: String, variables: [String] = []) {
        self.text = text
        self.variables = variables
    }
}

extension PipelineDefinition {
    /// Its jq programs.
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
    /// The keys whose values are programs, wherever they stand.
    private static let programKeys: Set<String> = Set([
        "transform", "combine", "jq", "key", "items", "valid-until", "made-at",
    ]).union(
        PagesDefinition.programKeys)

    /// The configuration without the pipelines whose programs have faults, and with a diagnostic for each fault.
    ///
    /// Reads the files of these pipelines again, for the places: `load()` does not keep any.
    package func refusing(_ faults: [ProgramError], in configuration: Configuration) -> Configuration {
        adding(
            faults.map { ($0.pipeline, diagnostics(of: $0, files: configuration.files[$0.pipeline] ?? [])) },
            to: configuration)
    }

    /// The configuration with further diagnostics, and without the pipelines that have errors among them.
    func adding(_ additions: [(pipeline: String, [Diagnostic])], to configuration: Configuration) -> Configuration {
        var configuration = configuration
        for (pipeline, diagnostics) in additions {
            configuration.diagnostics += diagnostics
            let isFaulty = diagnostics.contains { $0.severity == .error } || configuration.faulty[pipeline] != nil
            if isFaulty { configuration.faulty[pipeline, default: []] += diagnostics }
            configuration.faulty[pipeline]?.sort(by: Diagnostic.areInReadingOrder)
        }
        configuration.pipelines.removeAll { configuration.faulty[$0.name] != nil }
        configuration.diagnostics.sort(by: Diagnostic.areInReadingOrder)
        return configuration
    }

    /// One for each place where the program stands.
    private func diagnostics(of fault: ProgramError, files: [String]) -> [Diagnostic] {
        var diagnostics: [Diagnostic] = []
        // The last file that has a key is the one that counts; one that another hides may have the fault too.
        for file in files.reversed() where diagnostics.isEmpty {
            let (root, sources) = tree(of: file)
            for (keys, node) in root?.scalars(below: Self.programKeys) ?? [] {
                guard case .scalar(let scalar) = node.content, scalar.text == fault.program else { continue }
                var diagnostic = Diagnostic(
                    at: node.location, keyPath: keys.joined(separator: "."),
                    message: "'\(keys.last ?? "")' is not a program that jq understands",
                    quotation: fault.message)
                diagnostic.excerpt = sources[node.location.file]?.excerpt(
                    line: node.location.line, column: node.location.column)
                diagnostics.append(diagnostic)
            }
        }
        guard diagnostics.isEmpty else { return diagnostics }
        // The files have changed since they were read.
        return [
            Diagnostic(
                file: files.first ?? fault.pipeline, message: "a jq program has a fault", quotation: fault.message)
        ]
    }

    /// What stands below these keys of a pipeline's files; nil if nothing does.
    func node(at keys: [String], in files: [String]) -> (node: Node, sources: [String: SourceText])? {
        // The last file that has the key is the one that counts.
        for file in files.reversed() {
            let (root, sources) = tree(of: file)
            if let node = root?.node(at: keys[...]) { return (node, sources) }
        }
        return nil
    }
}

extension Node {
    /// The scalars that stand at one of these keys, at any depth, each with all keys that lead to it.
    fileprivate func scalars(below names: Set<String>, path: [String] = []) -> [(keys: [String], node: Node)] {
        guard case .mapping(let entries) = content else { return [] }
        return entries.flatMap { entry -> [(keys: [String], node: Node)] in
            let keys = path + [entry.key]
            if case .scalar = entry.value.content {
                // Below this one key names are not keys of the format.
                let isProgram = names.contains(entry.key) || path == ["cache", "files"]
                return isProgram ? [(keys, entry.value)] : []
            }
            return entry.value.scalars(below: names, path: keys)
        }
    }

    /// What stands below these keys, of which a number is a place in a list, from 0; nil if nothing does.
    fileprivate func node(at keys: ArraySlice<String>) -> Node? {
        guard let key = keys.first else { return self }
        if case .sequence(let nodes) = content, let place = Int(key), nodes.indices.contains(place) {
            return nodes[place].node(at: keys.dropFirst())
        }
        guard case .mapping(let entries) = content else { return nil }
        return entries.first { $0.key == key }?.value.node(at: keys.dropFirst())
    }
}
