import FreshetPipelines

/// Reads `on-change`.
struct HookReader {
    let reader: DefinitionReader

    /// The elements of `on-change`; a mapping without a list is one element.
    func hooks(in file: Section) -> [HookDefinition] {
        guard let entry = file["on-change"] else { return [] }
        let elements: [Node]
        if case .sequence(let nodes) = entry.value.content { elements = nodes } else { elements = [entry.value] }
        guard !elements.isEmpty else {
            reader.addError(
                entry.value.location, "on-change", "'on-change' is an empty list",
                remedy: "leave it out, or name a command: on-change: [{exec: [/usr/lib/program, argument]}]")
            return []
        }
        guard elements.count <= HookDefinition.perPipeline else {
            reader.addError(
                entry.location, "on-change", "there are more than \(HookDefinition.perPipeline) hooks",
                remedy: "hooks run one after the other: let one program do the work of several")
            return []
        }
        var hooks: [HookDefinition] = []
        var places: [String: Location] = [:]
        for element in elements {
            guard let section = reader.section(.hook, element, keyPath: "on-change", subject: "a hook of 'on-change'"),
                let hook = hook(in: section)
            else { continue }
            if let first = places.updateValue(element.location, forKey: hook.identity) {
                reader.addError(
                    element.location, "on-change",
                    hook.unit == nil ? "the same command appears twice" : "the same unit appears twice",
                    remedy: "keep one of them",
                    related: first)
            }
            hooks.append(hook)
        }
        return hooks
    }

    func hook(in section: Section) -> HookDefinition? {
        guard var hook = action(in: section) else { return nil }
        hook.timeout = reader.value("timeout", in: section, .duration(HookDefinition.timeouts)) ?? hook.timeout
        hook.splay =
            reader.value("splay", in: section, .duration(.zero...HookDefinition.longestSplay)) ?? hook.splay
        hook.limit = limit(in: section)
        return hook
    }

    private func limit(in hook: Section) -> HookLimit? {
        guard let section = reader.section(.hookLimit, "limit", in: hook) else { return nil }
        if section["group"] == nil {
            reader.missing(
                section.location, section.path("group"), "'limit' has no 'group'",
                remedy: "name the group whose hooks take turns: limit: {group: restarts}")
        }
        let number = reader.value("at-once", in: section, .integer(HookLimit.numbers)) ?? 1
        guard let group = reader.value("group", in: section, .groupOfHooks), let entry = section["group"] else {
            return nil
        }
        let limit = HookLimit(group: group, atOnce: number)
        reader.hookLimits.append(
            LocatedHookLimit(
                limit: limit, location: section["at-once"]?.location ?? entry.location,
                keyPath: section.path("at-once")))
        return limit
    }

    /// What the hook does, without the other settings.
    private func action(in section: Section) -> HookDefinition? {
        if let entry = section["reload-unit"] {
            if section["exec"] != nil {
                reader.addError(
                    entry.location, section.path("reload-unit"), "a hook has 'exec' and 'reload-unit'",
                    remedy: section.name == .sharedHook
                        ? "keep one of them, or write two files"
                        : "write two elements of 'on-change': they run one after the other")
            }
            return reader.value("reload-unit", in: section, .unitName).map { HookDefinition(reloading: $0) }
        }
        if section["exec"] == nil {
            reader.missing(
                section.location, section.path("exec"), "a hook has no 'exec'",
                remedy: "name the command: exec: [/usr/lib/program, argument]")
        }
        return CommandReader(reader: reader).command(in: section).map { HookDefinition($0) }
    }
}

extension ValueKind where Value == String {
    fileprivate static let groupOfHooks = ValueKind(name: "a name such as restarts") { scalar throws(ValueError) in
        let name = scalar.text
        guard (1...64).contains(name.utf8.count),
            name.utf8.allSatisfy({ HTTPText.isLetterOrDigit($0) || "-_".utf8.contains($0) })
        else {
            throw ValueError("has to be a name of letters, digits, '-' and '_', at most 64, not \(name.quoted)")
        }
        return name
    }

    /// The name of a unit with its type (systemd.unit(5)).
    fileprivate static let unitName = ValueKind(name: "the name of a unit such as nginx.service") {
        scalar throws(ValueError) in
        let name = scalar.text
        let types = ["service", "socket", "mount", "target", "slice", "scope", "timer", "path", "swap", "automount"]
        guard let dot = name.lastIndex(of: "."), types.contains(String(name[name.index(after: dot)...])) else {
            throw ValueError(
                "has to be the name of a unit with its type, not \(name.quoted)",
                remedy: "write \((name + ".service").quoted)")
        }
        guard name.utf8.count < 256, dot > name.startIndex,
            name.utf8.allSatisfy({ HTTPText.isLetterOrDigit($0) || ":-_.\\@".utf8.contains($0) })
        else {
            throw ValueError(
                "is not a valid unit name",
                remedy: "use at most 255 letters, digits and :-_.\\@; systemd-escape(1) converts other characters")
        }
        return name
    }
}
