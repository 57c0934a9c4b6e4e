import FreshetPipelines

/// Reads `refresh.dbus`.
struct BusMatchReader {
    let reader: DefinitionReader

    /// How many matches a pipeline may have. A bus accepts a few hundred from one connection (512, dbus-daemon(1)).
    static let maximumBusMatches = 64

    /// The elements of `refresh.dbus`; a mapping without a list is one element.
    func dbus(in section: Section) -> [BusSignalMatch] {
        guard let entry = section["dbus"] else { return [] }
        let keyPath = section.path("dbus")
        let elements: [Node]
        if case .sequence(let nodes) = entry.value.content { elements = nodes } else { elements = [entry.value] }
        guard elements.count <= Self.maximumBusMatches else {
            reader.addError(
                entry.location, keyPath, "there are more than \(Self.maximumBusMatches) matches",
                remedy: "one match with 'path-namespace', or without 'member', selects several signals")
            return []
        }
        var matches: [BusSignalMatch] = []
        for element in elements {
            guard let section = reader.section(.dbus, element, keyPath: keyPath, subject: "a match of 'dbus'"),
                let match = busMatch(in: section)
            else { continue }
            if matches.contains(match) {
                reader.warning(element.location, keyPath, "the match appears twice", remedy: "remove one of them")
            } else {
                matches.append(match)
            }
        }
        return matches
    }

    private func busMatch(in section: Section) -> BusSignalMatch? {
        let before = reader.errors.count
        var match = BusSignalMatch(bus: reader.value("bus", in: section, .choice()) ?? .system)
        let parts: [(String, WritableKeyPath<BusSignalMatch, String?>)] = [
            ("sender", \.sender), ("path", \.path), ("path-namespace", \.pathNamespace), ("interface", \.interface),
            ("member", \.member), ("arg0", \.firstArgument),
        ]
        for (key, part) in parts {
            guard let text = reader.value(key, in: section, .line), let entry = section[key] else { continue }
            match[keyPath: part] = text
            var alone = BusSignalMatch()
            alone[keyPath: part] = text
            if let error = reader.context.busError(alone) {
                reader.addError(entry.value.location, section.path(key), error)
            }
        }
        if section["interface"] == nil, section["sender"] == nil {
            reader.missing(
                section.location, section.name.path, "a match has neither 'interface' nor 'sender'",
                remedy: "add the interface or the sender of the signal")
        }
        guard reader.errors.count == before else { return nil }
        if let error = reader.context.busError(match) {
            reader.addError(section.location, section.name.path, error)
            return nil
        }
        return match
    }
}
