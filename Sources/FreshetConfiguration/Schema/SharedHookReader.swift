import FreshetPipelines

/// Reads the file of a hook of several pipelines.
struct SharedHookReader {
    let reader: DefinitionReader

    private static let example = "name the pipelines after whose changes the hook runs: on-change-of: [prices, stock]"

    /// Reads `hooks/NAME.yaml`. The result may be used only if ``DefinitionReader/errors`` contains no error. Whether
    /// the pipelines exist is checked after all files are read.
    ///
    /// - Returns: the definition, nil if a required part is missing; and the names with their locations.
    func hook(
        named name: String, from root: Node
    ) -> (definition: SharedHookDefinition?, pipelines: [LocatedPipelineName]) {
        guard let file = reader.root(.sharedHook, root) else { return (nil, []) }
        let description = reader.value("description", in: file, .line)
        let pipelines = pipelines(in: file)
        let action = HookReader(reader: reader).hook(in: file)
        let quiet = burst("quiet", in: file)
        let atMost = burst("at-most", in: file)
        if let quiet, let atMost, quiet > atMost, let entry = file["quiet"] {
            reader.addError(
                entry.value.location, "quiet", "'quiet' is longer than 'at-most', so it would have no effect",
                remedy: "make 'at-most' at least as long", related: file["at-most"]?.location)
        }
        guard let action, !pipelines.isEmpty else { return (nil, pipelines) }
        var hook = SharedHookDefinition(name, on: pipelines.map(\.name), action)
        hook.description = description
        hook.quiet = quiet ?? min(hook.quiet, atMost ?? hook.quiet)
        hook.atMost = atMost ?? max(hook.atMost, hook.quiet)
        return (hook, pipelines)
    }

    private func burst(_ key: String, in file: Section) -> Duration? {
        reader.value(key, in: file, .duration(.zero...SharedHookDefinition.longestQuiet))
    }

    private func pipelines(in file: Section) -> [LocatedPipelineName] {
        guard let entry = file["on-change-of"] else {
            reader.missing(
                file.location, "on-change-of", "'on-change-of' is missing", remedy: Self.example)
            return []
        }
        if case .sequence(let nodes) = entry.value.content, nodes.isEmpty {
            reader.addError(
                entry.value.location, "on-change-of", "'on-change-of' is an empty list", remedy: Self.example)
        }
        let names = reader.list("on-change-of", in: file, .pipelineName) ?? []
        if names.count > SharedHookDefinition.mostPipelines {
            reader.addError(
                names[SharedHookDefinition.mostPipelines].location, "on-change-of",
                "'on-change-of' names more than \(SharedHookDefinition.mostPipelines) pipelines",
                remedy: "write two files")
            return []
        }
        var known: [String: Location] = [:]
        var pipelines: [LocatedPipelineName] = []
        for (name, location) in names {
            if let first = known[name] {
                reader.addError(
                    location, "on-change-of", "'on-change-of' names \(name.quoted) twice",
                    remedy: "remove one of them", related: first)
            } else {
                known[name] = location
                pipelines.append(LocatedPipelineName(name: name, location: location))
            }
        }
        return pipelines
    }
}

/// A pipeline that a hook names, and its location in the hook's file.
struct LocatedPipelineName: Hashable, Sendable {
    var name: String
    var location: Location
}
