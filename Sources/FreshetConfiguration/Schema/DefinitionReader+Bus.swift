import FreshetPipelines

extension DefinitionReader {
    /// The most matches of one pipeline. A bus takes some hundreds of one connection (512, dbus-daemon(1)).
    static let maximumBusMatches = 64

    /// The elements of `refresh.dbus`; a mapping alone is a list of one.
    mutating func dbus(in section: Section) -> [BusSignalMatch] {
        guard let entry = section["dbus"] else { return [] }
        let keyPath = section.path("dbus")
        let elements: [Node]
        if case .sequence(let nodes) = entry.value.content { elements = nodes } else { elements = [entry.value] }
        guard elements.count <= Self.maximumBusMatches else {
            error(
                entry.location, keyPath, "there are more than \(Self.maximumBusMatches) matches",
                remedy: "a path-namespace, or a match without 'member', wants several signals")
            return []
        }
        var matches: [BusSignalMatch] = []
        for element in elements {
            guard let section = self.section(.dbus, element, keyPath: keyPath, subject: "a match of 'dbus'"),
                let match = busMatch(in: section)
            else { continue }
            if matches.contains(match) {
                warning(element.location, keyPath, "the match stands twice", remedy: "once is enough")
            } else {
                matches.append(match)
            }
        }
        return matches
    }

    private mutating func busMatch(in section: Section) -> BusSignalMatch? {
        let before = faults.count
        var match = BusSignalMatch(bus: value("bus", in: section, .choice()) ?? .system)
        let parts: [(String, WritableKeyPath<BusSignalMatch, String?>)] = [
            ("sender", \.sender), ("path", \.path), ("path-namespace", \.pathNamespace), ("interface", \.interface),
            ("member", \.member), ("arg0", \.firstArgument),
        ]
        for (key, part) in parts {
            guard let text = value(key, in: section, .line), let entry = section[key] else { continue }
            match[keyPath: part] = text
            var alone = BusSignalMatch()
            alone[keyPath: part] = text
            if let fault = terms.busFault(alone) { error(entry.value.location, section.path(key), fault) }
        }
        if section["interface"] == nil, section["sender"] == nil {
            missing(
                section.location, section.name.path, "a match has neither 'interface' nor 'sender'",
                remedy: "name the interface of the signal, or who sends it")
        }
        guard faults.count == before else { return nil }
        if let fault = terms.busFault(match) {
            error(section.location, section.name.path, fault)
            return nil
        }
        return match
    }
}
