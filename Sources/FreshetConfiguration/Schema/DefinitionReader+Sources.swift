import FreshetPipelines

extension DefinitionReader {
    /// The most sources of one pipeline: all are held at once.
    static let mostSources = 64

    /// The sources of a pipeline that joins several, and the program that makes one of them.
    mutating func joinedStage(in file: Section) -> StageDefinition? {
        guard let entry = file["sources"] else { return nil }
        if let other = file["source"] {
            error(
                other.location, "source", "'source' and 'sources' exclude each other",
                remedy: "keep one; a drop-in takes the other away with 'source: null'", related: entry.location)
        }
        guard case .mapping(let all) = entry.value.content else {
            if case .refused = entry.value.content { return nil }
            error(
                entry.value.location, "sources", "'sources' has to hold names with sources, not \(entry.value.kind)",
                remedy: "write sources: {a: {url: https://…}, b: {pipeline: NAME}}")
            return nil
        }
        // Drop-ins may take some away.
        let entries = all.filter { if case .removed = $0.value.content { false } else { true } }
        guard (1...Self.mostSources).contains(entries.count) else {
            error(
                entry.value.location, "sources",
                entries.isEmpty ? "'sources' is empty" : "there are more than \(Self.mostSources) sources",
                remedy: entries.isEmpty ? "name at least one" : "join some of them in a pipeline of their own")
            return nil
        }
        let sources = entries.compactMap { joinedSource($0) }
        let combine = value("combine", in: file, .program)
        if file["combine"] == nil {
            missing(
                entry.location, "combine", "'sources' has no 'combine'",
                remedy: "a jq program that makes one of the object that has them all: combine: '.a + .b'")
        }
        guard sources.count == entries.count else { return nil }
        return StageDefinition(.joined(sources), transform: combine)
    }

    private mutating func joinedSource(_ entry: Node.Entry) -> JoinedSource? {
        let keyPath = "sources.\(entry.key)"
        guard URLTemplate.isName(entry.key[...]), entry.key.utf8.count <= 64 else {
            error(
                entry.location, keyPath, "\(entry.key.quoted) is not a name for a source",
                remedy: "letters, digits, '-' and '_', and no digit or '-' first")
            return nil
        }
        return section(.source, entry.value, keyPath: keyPath, subject: "\(entry.key.quoted)")
            .flatMap { stage($0, among: []) }.map { JoinedSource(entry.key, $0) }
    }
}
