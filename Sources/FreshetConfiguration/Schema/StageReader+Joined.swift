import FreshetPipelines

extension StageReader {
    /// How many sources a pipeline may have: the contents of all of them are in memory at the same time.
    static let maximumSources = 64

    /// The sources of a pipeline that joins several, with the program that joins them.
    func joinedStage(in file: Section) -> StageDefinition? {
        guard let entry = file["sources"] else { return nil }
        if let other = file["source"] {
            reader.addError(
                other.location, "source", "'source' and 'sources' exclude each other",
                remedy: "keep one; a drop-in removes the other with 'source: null'", related: entry.location)
        }
        guard case .mapping(let all) = entry.value.content else {
            if case .invalid = entry.value.content { return nil }
            reader.addError(
                entry.value.location, "sources", "'sources' has to contain names with sources, not \(entry.value.kind)",
                remedy: "write sources: {a: {url: https://…}, b: {pipeline: NAME}}")
            return nil
        }
        // Drop-ins may have removed some of them.
        let entries = all.filter { if case .removed = $0.value.content { false } else { true } }
        guard (1...Self.maximumSources).contains(entries.count) else {
            reader.addError(
                entry.value.location, "sources",
                entries.isEmpty ? "'sources' is empty" : "there are more than \(Self.maximumSources) sources",
                remedy: entries.isEmpty ? "add at least one source" : "join some of them in another pipeline")
            return nil
        }
        let sources = entries.compactMap { joinedSource($0) }
        let combine = reader.value("combine", in: file, .program)
        if file["combine"] == nil {
            reader.missing(
                entry.location, "combine", "'sources' has no 'combine'",
                remedy: "add a jq program that gets an object with all sources: combine: '.a + .b'")
        }
        guard sources.count == entries.count else { return nil }
        return StageDefinition(.joined(sources), transform: combine)
    }

    private func joinedSource(_ entry: Node.Entry) -> JoinedSource? {
        let keyPath = "sources.\(entry.key)"
        guard URLTemplate.isName(entry.key[...]), entry.key.utf8.count <= 64 else {
            reader.addError(
                entry.location, keyPath, "\(entry.key.quoted) is not a valid source name",
                remedy: "use letters, digits, '-' and '_', beginning with a letter or '_'")
            return nil
        }
        return reader.section(.source, entry.value, keyPath: keyPath, subject: "\(entry.key.quoted)")
            .flatMap { stage($0, among: []) }.map { JoinedSource(entry.key, $0) }
    }
}
