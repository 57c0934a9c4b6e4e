import FreshetPipelines

/// Checks the placeholders in URLs, header fields, bodies and arguments.
struct PlaceholderChecker {
    let reader: DefinitionReader

    /// Checks that the placeholders in a request's header fields and body can be replaced.
    ///
    /// - Parameter items: The names of the items of the fan-outs around it.
    func checkPlaceholders(of source: HTTPSource, in section: Section, among items: [String]) {
        var fields: [Node.Entry] = []
        if case .mapping(let entries)? = section["headers"]?.value.content { fields = entries }
        for header in source.headers {
            guard case .text(let text) = header.value, let entry = fields.first(where: { $0.key == header.name })
            else { continue }
            let keyPath = "\(section.path("headers")).\(header.name)"
            checkPlaceholders(in: text, as: .header, entry.value.location, keyPath, among: items)
            var alone = HTTPSource(url: "https://localhost/", host: "localhost")
            alone.headers = [header]
            checkDefaults(of: alone, entry.value.location, keyPath)
        }
        guard case .post(let body, let contentType) = source.method, let entry = section["body"] else { return }
        let location = entry.value.location
        guard let kind = TextTemplate.Kind(contentType: contentType) else {
            rejectPlaceholders(in: body, of: contentType, location, section.path("body"), among: items)
            return
        }
        checkPlaceholders(in: body, as: kind, location, section.path("body"), among: items)
        var alone = HTTPSource(url: "https://localhost/", host: "localhost")
        alone.method = source.method
        checkDefaults(of: alone, location, section.path("body"))
    }

    /// Checks the placeholders in a command's arguments.
    func checkPlaceholders(ofArguments nodes: [Node], _ keyPath: String, among items: [String]) {
        for node in nodes {
            guard case .scalar(let scalar) = node.content else { continue }
            checkPlaceholders(in: scalar.text, as: .argument, node.location, keyPath, among: items)
        }
    }

    /// Checks the placeholders of a text. Braces may be literal text, so braces without a known name are allowed; a
    /// name that is similar to a known one gets a warning.
    private func checkPlaceholders(
        in text: String, as kind: TextTemplate.Kind, _ location: Location, _ keyPath: String, among items: [String]
    ) {
        let names = items + reader.parameterNames
        guard !names.isEmpty else { return }
        var known: Set<URLTemplate.Placeholder> = []
        for placeholder in TextTemplate(text, as: kind).placeholders where known.insert(placeholder).inserted {
            if names.contains(placeholder.name) {
                guard reader.parameterNames.contains(placeholder.name), !placeholder.path.isEmpty else { continue }
                reader.warning(
                    location, keyPath,
                    "'{\(placeholder)}' is not replaced: the parameter '\(placeholder.name)' has no fields",
                    remedy: "write {\(placeholder.name)}")
            } else if let near = Suggestion.nearest(to: placeholder.name, among: names) {
                let suggestion = URLTemplate.Placeholder(near, path: placeholder.path)
                reader.warning(
                    location, keyPath, "the unknown placeholder '{\(placeholder)}' is not replaced",
                    remedy: "did you mean '{\(suggestion)}'?")
            }
        }
    }

    /// Rejects placeholders in a body of another type: Freshet cannot escape the values for it.
    private func rejectPlaceholders(
        in body: String, of contentType: String, _ location: Location, _ keyPath: String, among items: [String]
    ) {
        let names = items + reader.parameterNames
        guard
            let placeholder = TextTemplate(body, as: .argument).placeholders.first(where: { names.contains($0.name) })
        else { return }
        reader.addError(
            location, keyPath,
            "a body of the type \(contentType.quoted) cannot have the placeholder '{\(placeholder)}'",
            remedy: "use placeholders in bodies of application/json and application/x-www-form-urlencoded, or in the "
                + "URL")
    }

    private func checkDefaults(of source: HTTPSource, _ location: Location, _ keyPath: String) {
        guard let defaults = defaultValues, let (name, error) = SourceDefinition.http(source).error(with: defaults)
        else {
            return
        }
        reader.addError(
            location, keyPath, name.map { "the default of '\($0)' \(error)" } ?? "a default \(error)",
            remedy: "change the default, or move the placeholder")
    }

    /// Checks that each placeholder of a URL is an item or a parameter.
    func checkPlaceholders(of url: String, _ entry: Node.Entry, in section: Section, among items: [String]) {
        // A URL without braces has no placeholders. Its length was checked when it was read.
        guard url.utf8.contains(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }) else { return }
        guard let template = try? URLTemplate(url) else { return }  // reported when the URL was read
        let names = items + reader.parameterNames
        var known: Set<URLTemplate.Placeholder> = []
        for placeholder in template.placeholders where known.insert(placeholder).inserted {
            if reader.parameterNames.contains(placeholder.name), !placeholder.path.isEmpty {
                reader.addError(
                    entry.value.location, section.path(entry.key),
                    "'\(entry.key)' has '{\(placeholder)}', but the parameter '\(placeholder.name)' has no fields",
                    remedy: "write {\(placeholder.name)}")
            }
            guard !names.contains(placeholder.name) else { continue }
            var remedy = "declare '\(placeholder.name)' below 'parameters'; write a literal brace as %7B or %7D"
            if let near = Suggestion.nearest(to: placeholder.name, among: names) {
                remedy = "did you mean '{\(near)}'?"
            } else if !names.isEmpty {
                remedy = "the placeholders here are \(names.map { "{\($0)}" }.joined(separator: ", "))"
            }
            reader.addError(
                entry.value.location, section.path(entry.key),
                "'\(entry.key)' has the unknown placeholder '{\(placeholder.name)}'", remedy: remedy)
        }
        if template.placeholders.allSatisfy({ names.contains($0.name) }) { checkDefaults(of: url, entry, in: section) }
    }

    /// All parameters with their defaults; nil if one of them is invalid, which was reported already.
    var defaultValues: ParameterValues? {
        guard reader.parameters.count == reader.parameterNames.count else { return nil }
        return ParameterValues(Dictionary(reader.parameters.map { ($0.name, $0.defaultValue) }) { first, _ in first })
    }

    /// Checks that the URL is valid with the defaults of the parameters.
    func checkDefaults(of url: String, _ entry: Node.Entry, in section: Section) {
        guard let values = defaultValues,
            let (name, error) = SourceDefinition.http(HTTPSource(url: url, host: "")).error(with: values)
        else { return }
        reader.addError(
            entry.value.location, section.path(entry.key),
            name.map { "the default of '\($0)' \(error)" } ?? "with the defaults, the URL would be too long",
            remedy: "change the default, or move the placeholder")
    }
}
