import FreshetPipelines

extension DefinitionReader {
    /// The elements of `on-change`; a mapping alone is a list of one.
    mutating func hooks(in file: Section) -> [HookDefinition] {
        guard let entry = file["on-change"] else { return [] }
        let elements: [Node]
        if case .sequence(let nodes) = entry.value.content { elements = nodes } else { elements = [entry.value] }
        guard !elements.isEmpty else {
            error(
                entry.value.location, "on-change", "'on-change' is an empty list",
                remedy: "leave it out, or name a command: on-change: [{exec: [/usr/lib/program, argument]}]")
            return []
        }
        guard elements.count <= HookDefinition.perPipeline else {
            error(
                entry.location, "on-change", "there are more than \(HookDefinition.perPipeline) hooks",
                remedy: "they run one after the other: a program can do the work of several")
            return []
        }
        var hooks: [HookDefinition] = []
        var places: [String: Location] = [:]
        for element in elements {
            guard let section = section(.hook, element, keyPath: "on-change", subject: "a hook of 'on-change'"),
                let hook = hook(in: section)
            else { continue }
            if let first = places.updateValue(element.location, forKey: hook.identity) {
                error(
                    element.location, "on-change", "the same command stands twice", remedy: "keep one of them",
                    related: first)
            }
            hooks.append(hook)
        }
        return hooks
    }

    private mutating func hook(in section: Section) -> HookDefinition? {
        if section["exec"] == nil {
            missing(
                section.location, section.path("exec"), "a hook has no 'exec'",
                remedy: "name the command: exec: [/usr/lib/program, argument]")
        }
        let timeout = value("timeout", in: section, .duration(HookDefinition.timeouts))
        return command(in: section).map { HookDefinition($0, timeout: timeout ?? HookDefinition.defaultTimeout) }
    }
}
