import FreshetPipelines

extension DefinitionReader {
    /// The fan-out below a source, and what is below that.
    ///
    /// - Parameter names: of the items around it.
    mutating func each(in parent: Section, among names: [String]) -> EachDefinition? {
        guard parent["each"] != nil, let section = section(.each, "each", in: parent) else { return nil }
        guard names.count < EachDefinition.maximumDepth else {
            error(
                section.location, section.keyPath,
                "'each' stands within more than \(EachDefinition.maximumDepth - 1) others",
                remedy: "the numbers of their requests multiply: let another pipeline fetch what is inside")
            return nil
        }
        let key = value("key", in: section, .program)
        let concurrency = value("concurrency", in: section, .integer(1...EachDefinition.maximumConcurrency))
        let onError = onError(in: section)
        let name = itemName(in: section, among: names)
        guard let stage = stage(section, among: names + [name ?? ""]), let name else { return nil }
        return EachDefinition(
            as: name, key: key ?? EachDefinition.defaultKey,
            concurrency: concurrency ?? EachDefinition.defaultConcurrency, onError: onError ?? .previous, stage)
    }

    private mutating func onError(in section: Section) -> EachDefinition.OnError? {
        // Here YAML's null is a word like the others.
        if case .scalar(let scalar)? = section["on-error"]?.value.content, scalar.isNothing, scalar.text == "null" {
            return .null
        }
        return value("on-error", in: section, .choice())
    }

    private mutating func itemName(in section: Section, among names: [String]) -> String? {
        guard let entry = section["as"] else {
            missing(
                section.location, section.path("as"), "'each' has no 'as'",
                remedy: "name what it goes through: with 'as: topic' an item is {topic.id} in a URL and $topic in jq")
            return nil
        }
        guard let name = value("as", in: section, .line) else { return nil }
        guard URLTemplate.isName(name[...]), name.utf8.count <= 64 else {
            error(
                entry.value.location, section.path("as"), "'as' has to be a name, not \(name.quoted)",
                remedy: "letters, digits, '-' and '_', and no digit or '-' first")
            return nil
        }
        guard !names.contains(where: { JQVariable.name($0) == JQVariable.name(name) }) else {
            error(
                entry.value.location, section.path("as"), "'\(name)' is the name of something around it",
                remedy: "choose another name")
            return nil
        }
        return name
    }

    /// Each place of a URL has to be something that is there.
    mutating func checkPlaces(of url: String, _ entry: Node.Entry, in section: Section, among names: [String]) {
        let template: URLTemplate
        do throws(URLTemplate.Fault) {
            template = try URLTemplate(url)
        } catch {
            self.error(
                entry.value.location, section.path(entry.key), "'\(entry.key)' \(error.sentence)",
                remedy: "a place for a value is a name in braces; a literal brace is %7B or %7D")
            return
        }
        for place in template.places where !names.contains(place.name) {
            var remedy = "a literal brace is %7B or %7D"
            if let near = Suggestion.nearest(to: place.name, among: names) {
                remedy = "did you mean '{\(near)}'?"
            } else if !names.isEmpty {
                remedy = "there is \(names.map { "{\($0)}" }.joined(separator: ", "))"
            }
            error(
                entry.value.location, section.path(entry.key),
                "'\(entry.key)' has a place for '\(place.name)', and nothing is called so", remedy: remedy)
        }
    }
}
