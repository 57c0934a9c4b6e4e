import FreshetPipelines

/// Places for values in what is no URL: header fields, bodies, arguments.
extension DefinitionReader {
    /// What in a request's header fields and body looks like a place has to be one that can be filled.
    ///
    /// - Parameter items: the names of the items around it.
    mutating func checkPlaces(of source: HTTPSource, in section: Section, among items: [String]) {
        var fields: [Node.Entry] = []
        if case .mapping(let entries)? = section["headers"]?.value.content { fields = entries }
        for header in source.headers {
            guard case .text(let text) = header.value, let entry = fields.first(where: { $0.key == header.name })
            else { continue }
            let keyPath = "\(section.path("headers")).\(header.name)"
            checkPlaces(in: text, as: .header, entry.value.location, keyPath, among: items)
            var alone = HTTPSource(url: "https://localhost/", host: "localhost")
            alone.headers = [header]
            checkDefaults(of: alone, entry.value.location, keyPath)
        }
        guard case .post(let body, let contentType) = source.method, let entry = section["body"] else { return }
        let location = entry.value.location
        guard let kind = TextTemplate.Kind(contentType: contentType) else {
            refusePlaces(in: body, of: contentType, location, section.path("body"), among: items)
            return
        }
        checkPlaces(in: body, as: kind, location, section.path("body"), among: items)
        var alone = HTTPSource(url: "https://localhost/", host: "localhost")
        alone.method = source.method
        checkDefaults(of: alone, location, section.path("body"))
    }

    /// The same of a command's arguments.
    mutating func checkPlaces(ofArguments nodes: [Node], _ keyPath: String, among items: [String]) {
        for node in nodes {
            guard case .scalar(let scalar) = node.content else { continue }
            checkPlaces(in: scalar.text, as: .argument, node.location, keyPath, among: items)
        }
    }

    /// Braces may be meant as they are: what is no name is left alone, and what is nearly one is doubtful.
    private mutating func checkPlaces(
        in text: String, as kind: TextTemplate.Kind, _ location: Location, _ keyPath: String, among items: [String]
    ) {
        let names = items + parameterNames
        guard !names.isEmpty else { return }
        var known: Set<URLTemplate.Place> = []
        for place in TextTemplate(text, as: kind).places where known.insert(place).inserted {
            if names.contains(place.name) {
                guard parameterNames.contains(place.name), !place.path.isEmpty else { continue }
                warning(
                    location, keyPath, "'{\(place)}' looks into the parameter '\(place.name)', and stays as it stands",
                    remedy: "a parameter is one text: write {\(place.name)}")
            } else if let near = Suggestion.nearest(to: place.name, among: names) {
                let meant = URLTemplate.Place(near, path: place.path)
                warning(
                    location, keyPath, "nothing is called '\(place.name)', and '{\(place)}' stays as it stands",
                    remedy: "did you mean '{\(meant)}'?")
            }
        }
    }

    /// How a value has to be written in a body of another type is not known: it could end what it stands in.
    private mutating func refusePlaces(
        in body: String, of contentType: String, _ location: Location, _ keyPath: String, among items: [String]
    ) {
        let names = items + parameterNames
        guard let place = TextTemplate(body, as: .argument).places.first(where: { names.contains($0.name) }) else {
            return
        }
        error(
            location, keyPath, "a body of the type \(contentType.quoted) has no place for '{\(place)}'",
            remedy: "values can be put into bodies of application/json and application/x-www-form-urlencoded, and into "
                + "the URL")
    }

    private mutating func checkDefaults(of source: HTTPSource, _ location: Location, _ keyPath: String) {
        guard let defaults = defaultValues, let (name, fault) = SourceDefinition.http(source).fault(with: defaults)
        else {
            return
        }
        error(
            location, keyPath, name.map { "the default of '\($0)' \(fault)" } ?? "what the defaults come to \(fault)",
            remedy: "give the parameter another default, or another place")
    }
}
