import FreshetPipelines

/// Reads `source.each`.
struct EachReader {
    let reader: DefinitionReader

    /// The fan-out of a source, with its inner fan-outs.
    ///
    /// - Parameter names: The names of the items of the outer fan-outs.
    func each(in parent: Section, among names: [String]) -> EachDefinition? {
        guard parent["each"] != nil, let section = reader.section(.each, "each", in: parent) else { return nil }
        guard names.count < EachDefinition.maximumDepth else {
            reader.addError(
                section.location, section.keyPath,
                "'each' is nested more than \(EachDefinition.maximumDepth) levels deep",
                remedy: "the numbers of requests multiply: let another pipeline fetch the inner data")
            return nil
        }
        let key = reader.value("key", in: section, .program)
        let concurrency = reader.value("concurrency", in: section, .integer(1...EachDefinition.maximumConcurrency))
        let onError = onError(in: section)
        let publish: EachDefinition.Publish? = reader.value("publish", in: section, .choice())
        if publish == .progressive, let entry = section["publish"], parent.keyPath != "source" {
            reader.addError(
                entry.value.location, section.path("publish"),
                "'publish: progressive' is allowed only in 'each' directly below 'source'",
                remedy: "leave it out here")
        }
        if publish == .progressive, let entry = section["publish"], let inner = section["each"] {
            reader.addError(
                entry.value.location, section.path("publish"),
                "'publish: progressive' is not allowed with an inner 'each'",
                remedy: "leave it out: the previous content of such a branch could not be kept in the list",
                related: inner.location)
        }
        let sameOrigin = reader.value("same-origin", in: section, .boolean)
        let name = itemName(in: section, among: names)
        guard let stage = StageReader(reader: reader).stage(section, among: names + [name ?? ""]), let name else {
            return nil
        }
        checkURLs(of: name, in: stage, sameOrigin, in: section, of: parent)
        return EachDefinition(
            as: name, key: key ?? EachDefinition.defaultKey,
            concurrency: concurrency ?? EachDefinition.defaultConcurrency, onError: onError ?? .previous,
            publish: publish ?? .complete, sameOrigin: sameOrigin ?? true, stage)
    }

    private func onError(in section: Section) -> EachDefinition.OnError? {
        // Here YAML's null is one of the values, not a missing value.
        if case .scalar(let scalar)? = section["on-error"]?.value.content, scalar.isNothing, scalar.text == "null" {
            return .null
        }
        return reader.value("on-error", in: section, .choice())
    }

    /// Whether the whole URL comes from an item.
    func isURLFromData(in section: Section, among items: [String]) -> Bool {
        guard case .scalar(let scalar)? = section["url"]?.value.content,
            let placeholder = URLTemplate.whole(scalar.text)
        else { return false }
        return items.contains(placeholder.name)
    }

    /// Checks URLs that an item gives as a whole, in this stage or in an inner one. Their origin is checked at run
    /// time; this function checks that no credential, header or body of the list's origin would be sent to another
    /// origin.
    ///
    /// - Parameters:
    ///   - name: The name of the item.
    ///   - parent: The section of the source from which the list comes.
    private func checkURLs(
        of name: String, in stage: StageDefinition, _ sameOrigin: Bool?, in section: Section, of parent: Section
    ) {
        let own = stage.source.requestFromData
        let requests = stage.all.compactMap(\.source.requestFromData).filter { $0.urlPlaceholder?.name == name }
        guard !requests.isEmpty else {
            if let entry = section["same-origin"] {
                reader.warning(
                    entry.location, section.path("same-origin"),
                    "'same-origin' has no effect here: no item of this list gives a whole URL",
                    remedy: "leave it out, or use a whole URL of an item, such as url: '{item.url}'")
            }
            return
        }
        let socket = parent["unix-socket"]
        guard parent["url"] == nil || socket != nil else { return }
        let url = own?.urlPlaceholder?.name == name ? section["url"] : nil
        let location = url?.value.location ?? section.location
        let path = url == nil ? section.keyPath : section.path("url")
        if sameOrigin != false {
            reader.addError(
                location, path,
                "an item gives the URL, but the list "
                    + (socket == nil ? "has no origin" : "comes from a socket, which has no origin"),
                remedy: "to allow URLs of any origin, set same-origin: false", related: socket?.location)
        }
        if requests.contains(where: \.isBoundToOrigin) {
            reader.addError(
                location, path,
                "an item gives the URL, but headers, credentials, a body and a certificate authority are used only for "
                    + "the origin of the list, and this list has no origin",
                remedy: "leave them out, or write the URL in the file")
        }
    }

    private func itemName(in section: Section, among names: [String]) -> String? {
        guard let entry = section["as"] else {
            reader.missing(
                section.location, section.path("as"), "'each' has no 'as'",
                remedy: "add a name for the items: 'as: topic' defines {topic.id} for URLs and $topic for jq programs")
            return nil
        }
        guard let name = reader.value("as", in: section, .line) else { return nil }
        guard URLTemplate.isName(name[...]), name.utf8.count <= 64 else {
            reader.addError(
                entry.value.location, section.path("as"), "'as' has to be a name, not \(name.quoted)",
                remedy: "use letters, digits, '-' and '_', beginning with a letter or '_'")
            return nil
        }
        guard !(names + reader.parameterNames).contains(where: { JQVariable.name($0) == JQVariable.name(name) }) else {
            reader.addError(
                entry.value.location, section.path("as"),
                "the name '\(name)' is already used by a parameter or an outer 'each'",
                remedy: "choose another name")
            return nil
        }
        return name
    }
}

extension HTTPSource {
    /// Whether the request has parts that must be sent to one origin only.
    fileprivate var isBoundToOrigin: Bool {
        !headers.isEmpty || clientCertificate != nil || certificateAuthority != nil || method != .get
    }
}

extension SourceDefinition {
    /// The request, if its whole URL comes from an item.
    fileprivate var requestFromData: HTTPSource? {
        guard case .http(let request) = self, request.urlPlaceholder != nil else { return nil }
        return request
    }
}
