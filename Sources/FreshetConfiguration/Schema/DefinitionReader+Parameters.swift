import FreshetPipelines

extension DefinitionReader {
    /// The longest `quiet` of a parameter: whoever set it waits for it.
    static let longestParameterQuiet: Duration = .seconds(3600)

    /// What stands below `parameters`, in its order.
    mutating func parameters(in file: Section) -> [ParameterDefinition] {
        guard let entry = file["parameters"] else { return [] }
        guard case .mapping(let entries) = entry.value.content else {
            if case .refused = entry.value.content { return [] }
            error(
                entry.value.location, "parameters",
                "'parameters' has to hold names with keys, not \(entry.value.kind)",
                remedy: "write parameters: {language: {default: en}}")
            return []
        }
        let present = entries.filter { if case .removed = $0.value.content { false } else { true } }
        guard present.count <= ParameterLimits.perPipeline else {
            error(entry.location, "parameters", "there are more than \(ParameterLimits.perPipeline) parameters")
            return []
        }
        return present.compactMap { parameter($0) }
    }

    private mutating func parameter(_ entry: Node.Entry) -> ParameterDefinition? {
        let path = "parameters.\(entry.key)"
        guard URLTemplate.isName(entry.key[...]), entry.key.utf8.count <= ParameterLimits.nameBytes else {
            error(
                entry.location, path, "\(entry.key.quoted) cannot be the name of a parameter",
                remedy: "use at most \(ParameterLimits.nameBytes) letters, digits, '-' and '_', a letter or '_' first")
            return nil
        }
        let subject = "the parameter '\(entry.key)'"
        guard let section = section(.parameter, entry.value, keyPath: path, subject: subject) else { return nil }
        let rule = rule(in: section, path)
        let quiet = section["quiet"].flatMap {
            value(
                of: $0.value, key: "quiet", keyPath: "\(path).quiet",
                .duration(Duration.zero...Self.longestParameterQuiet))
        }
        guard let defaultEntry = section["default"] else {
            missing(
                section.location, "\(path).default", "\(subject) has no 'default'",
                remedy: "say what it is as long as nobody sets it, which may be empty: default: \"\"")
            return nil
        }
        guard let rule,
            let text = value(of: defaultEntry.value, key: "default", keyPath: "\(path).default", .parameterValue)
        else { return nil }
        let parameter = ParameterDefinition(entry.key, default: text, rule: rule, quiet: quiet ?? .zero)
        if let fault = parameter.fault(of: text) {
            error(
                defaultEntry.value.location, "\(path).default", "the default of '\(entry.key)' \(fault)",
                remedy: "a default is a value like any other")
            return nil
        }
        return parameter
    }

    /// Nil: what stands there is faulty.
    private mutating func rule(in section: Section, _ path: String) -> ParameterDefinition.Rule? {
        if let choices = section["choices"], let pattern = section["pattern"] {
            error(
                pattern.location, "\(path).pattern", "'pattern' and 'choices' exclude each other",
                remedy: "keep one", related: choices.location)
            return nil
        }
        if let entry = section["pattern"] {
            return value(of: entry.value, key: "pattern", keyPath: "\(path).pattern", .pattern).map { .pattern($0) }
        }
        guard let entry = section["choices"] else { return .any }
        guard case .sequence(let nodes) = entry.value.content, (1...ParameterLimits.choices).contains(nodes.count)
        else {
            if case .refused = entry.value.content { return nil }
            error(
                entry.value.location, "\(path).choices",
                "'choices' has to be a list of 1 to \(ParameterLimits.choices) texts")
            return nil
        }
        let before = faults.count
        var choices: [String] = []
        for node in nodes {
            guard let choice = value(of: node, key: "choices", keyPath: "\(path).choices", .parameterValue) else {
                continue
            }
            if choices.contains(choice) {
                warning(node.location, "\(path).choices", "a choice stands twice", remedy: "once is enough")
            } else {
                choices.append(choice)
            }
        }
        return faults[before...].contains { $0.severity == .error } ? nil : .choices(choices)
    }

    /// Looks at the places of a URL: each has to be a parameter.
    ///
    /// - Parameter entry: where the URL stands, in a section of `file`.
    mutating func checkPlaces(
        in url: String, _ entry: Node.Entry, keyPath: String, file: Section, _ parameters: [ParameterDefinition]
    ) {
        guard let template = try? URLTemplate(url) else { return }  // what is wrong with it was said before
        // A parameter that is faulty itself is declared all the same.
        var declared: [String] = []
        if case .mapping(let entries) = file["parameters"]?.value.content { declared = entries.map(\.key) }
        var known: Set<URLTemplate.Place> = []
        for place in template.places where known.insert(place).inserted {
            if declared.contains(place.name) {
                guard !place.path.isEmpty else { continue }
                error(
                    entry.value.location, keyPath, "'{\(place)}' looks into the parameter '\(place.name)'",
                    remedy: "a parameter is one text: write {\(place.name)}")
                continue
            }
            let near = Suggestion.nearest(to: place.name, among: declared)
            error(
                entry.value.location, keyPath, "'{\(place)}' names no parameter",
                remedy: near.map { "did you mean '{\($0)}'?" }
                    ?? "declare '\(place.name)' below 'parameters'; a literal brace is %7B or %7D")
        }
        guard declared.count == parameters.count, known.allSatisfy({ declared.contains($0.name) }) else { return }
        let values = ParameterValues(
            Dictionary(parameters.map { ($0.name, $0.defaultValue) }) { first, _ in first })
        let source = SourceDefinition.http(HTTPSource(url: url, host: ""))
        if let (name, fault) = source.fault(with: values) {
            error(
                entry.value.location, keyPath,
                name.map { "the default of '\($0)' \(fault)" } ?? "with the defaults, the URL would be too long",
                remedy: "give the parameter another default, or another place")
        }
    }
}

extension ValueKind where Value == String {
    /// A value of a parameter, which may be empty if it is quoted.
    fileprivate static let parameterValue = ValueKind(name: "text") { scalar throws(ValueFault) in
        if let fault = ParameterDefinition("", default: "").fault(of: scalar.text) { throw ValueFault(fault) }
        return scalar.text
    }

    fileprivate static let pattern = ValueKind(name: "a regular expression such as '[a-z]{2}'") {
        scalar throws(ValueFault) in
        do throws(ParameterPattern.Fault) {
            _ = try ParameterPattern(scalar.text)
            return scalar.text
        } catch {
            throw ValueFault(error.message, remedy: error.remedy)
        }
    }
}
