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
        let publish: EachDefinition.Publish? = value("publish", in: section, .choice())
        if publish == .progressive, let entry = section["publish"], parent.keyPath != "source" {
            error(
                entry.value.location, section.path("publish"), "only the pipeline's own list is published as it comes",
                remedy: "leave it out here: the outermost 'each' below 'source' may have it")
        }
        if publish == .progressive, let entry = section["publish"], let inner = section["each"] {
            error(
                entry.value.location, section.path("publish"),
                "a list is published as it comes only if its branches have no branches of their own",
                remedy: "leave it out: what such a branch showed before could not stand in its place",
                related: inner.location)
        }
        let sameOrigin = value("same-origin", in: section, .boolean)
        let name = itemName(in: section, among: names)
        guard let stage = stage(section, among: names + [name ?? ""]), let name else { return nil }
        checkURLs(of: name, in: stage, sameOrigin, in: section, of: parent)
        return EachDefinition(
            as: name, key: key ?? EachDefinition.defaultKey,
            concurrency: concurrency ?? EachDefinition.defaultConcurrency, onError: onError ?? .previous,
            publish: publish ?? .complete, sameOrigin: sameOrigin ?? true, stage)
    }

    private mutating func onError(in section: Section) -> EachDefinition.OnError? {
        // Here YAML's null is a word like the others.
        if case .scalar(let scalar)? = section["on-error"]?.value.content, scalar.isNothing, scalar.text == "null" {
            return .null
        }
        return value("on-error", in: section, .choice())
    }

    /// Whether all of the URL comes from an item.
    func isURLFromData(in section: Section, among items: [String]) -> Bool {
        guard case .scalar(let scalar)? = section["url"]?.value.content, let place = URLTemplate.whole(scalar.text)
        else { return false }
        return items.contains(place.name)
    }

    /// URLs that are an item's as a whole, in this stage or further in. Where they lead is seen when they are there; what
    /// they must not take along is known before.
    ///
    /// - Parameters:
    ///   - name: the item's.
    ///   - parent: what the list comes from.
    private mutating func checkURLs(
        of name: String, in stage: StageDefinition, _ sameOrigin: Bool?, in section: Section, of parent: Section
    ) {
        let own = stage.source.requestFromData
        let requests = stage.all.compactMap(\.source.requestFromData).filter { $0.placeOfURL?.name == name }
        guard !requests.isEmpty else {
            if let entry = section["same-origin"] {
                warning(
                    entry.location, section.path("same-origin"),
                    "'same-origin' means nothing here: no URL's origin comes from an item of this list",
                    remedy: "it belongs to a whole URL of an item, such as url: '{item.url}'")
            }
            return
        }
        let socket = parent["unix-socket"]
        guard parent["url"] == nil || socket != nil else { return }
        let url = own?.placeOfURL?.name == name ? section["url"] : nil
        let location = url?.value.location ?? section.location
        let path = url == nil ? section.keyPath : section.path("url")
        if sameOrigin != false {
            error(
                location, path,
                "an item names the URL, and the list comes from "
                    + (socket == nil ? "no origin" : "a socket, which is no URL's origin"),
                remedy: "to follow URLs to any origin: same-origin: false", related: socket?.location)
        }
        if requests.contains(where: \.hasOwn) {
            error(
                location, path,
                "an item names the URL, and headers and credentials are sent to the list's origin only, which has none; "
                    + "the same goes for a body and a certificate authority",
                remedy: "leave them out, or write the URL down")
        }
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
        guard !(names + parameterNames).contains(where: { JQVariable.name($0) == JQVariable.name(name) }) else {
            error(
                entry.value.location, section.path("as"), "'\(name)' is the name of something around it",
                remedy: "choose another name")
            return nil
        }
        return name
    }

    /// Each place of a URL has to be something that is there: an item or a parameter.
    mutating func checkPlaces(of url: String, _ entry: Node.Entry, in section: Section, among items: [String]) {
        guard let template = try? URLTemplate(url) else { return }  // said where the URL was read
        let names = items + parameterNames
        var known: Set<URLTemplate.Place> = []
        for place in template.places where known.insert(place).inserted {
            if parameterNames.contains(place.name), !place.path.isEmpty {
                error(
                    entry.value.location, section.path(entry.key),
                    "'\(entry.key)' looks with '{\(place)}' into the parameter '\(place.name)'",
                    remedy: "a parameter is one text: write {\(place.name)}")
            }
            guard !names.contains(place.name) else { continue }
            var remedy = "declare '\(place.name)' below 'parameters'; a literal brace is %7B or %7D"
            if let near = Suggestion.nearest(to: place.name, among: names) {
                remedy = "did you mean '{\(near)}'?"
            } else if !names.isEmpty {
                remedy = "there is \(names.map { "{\($0)}" }.joined(separator: ", "))"
            }
            error(
                entry.value.location, section.path(entry.key),
                "'\(entry.key)' has a place for '\(place.name)', and nothing is called so", remedy: remedy)
        }
        if template.places.allSatisfy({ names.contains($0.name) }) { checkDefaults(of: url, entry, in: section) }
    }
}

extension HTTPSource {
    /// It has what is meant for one origin.
    fileprivate var hasOwn: Bool {
        !headers.isEmpty || clientCertificate != nil || certificateAuthority != nil || method != .get
    }
}

extension SourceDefinition {
    /// The request, if all of its URL comes from an item.
    fileprivate var requestFromData: HTTPSource? {
        guard case .http(let request) = self, request.placeOfURL != nil else { return nil }
        return request
    }
}
