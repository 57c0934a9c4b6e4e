import FreshetPipelines

extension DefinitionReader {
    /// The longest `quiet` of a parameter: whoever set it waits for it.
    static let longestParameterQuiet: Duration = .seconds(3600)

    /// Reads what stands below `parameters`, in its order.
    mutating func readParameters(in file: Section) {
        guard let entry = file["parameters"] else { return }
        guard case .mapping(let entries) = entry.value.content else {
            if case .refused = entry.value.content { return }
            error(
                entry.value.location, "parameters",
                "'parameters' has to hold names with keys, not \(entry.value.kind)",
                remedy: "write parameters: {language: {default: en}}")
            return
        }
        let present = entries.filter { if case .removed = $0.value.content { false } else { true } }
        parameterNames = present.map(\.key)
        guard present.count <= ParameterLimits.perPipeline else {
            error(entry.location, "parameters", "there are more than \(ParameterLimits.perPipeline) parameters")
            return
        }
        parameters = present.compactMap { parameter($0) }
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

    /// All parameters with their defaults; nil if one is faulty, which is fault enough.
    var defaultValues: ParameterValues? {
        guard parameters.count == parameterNames.count else { return nil }
        return ParameterValues(Dictionary(parameters.map { ($0.name, $0.defaultValue) }) { first, _ in first })
    }

    /// The defaults have to make a whole path of a URL.
    mutating func checkDefaults(of url: String, _ entry: Node.Entry, in section: Section) {
        guard let values = defaultValues,
            let (name, fault) = SourceDefinition.http(HTTPSource(url: url, host: "")).fault(with: values)
        else { return }
        error(
            entry.value.location, section.path(entry.key),
            name.map { "the default of '\($0)' \(fault)" } ?? "with the defaults, the URL would be too long",
            remedy: "give the parameter another default, or another place")
    }
}

extension ValueKind where Value == String {
    /// A value of a parameter, which may be empty if it is quoted.
    fileprivate static let parameterValue = ValueKind(name: "text") { scalar throws(ValueError) in
        if let fault = ParameterDefinition("", default: "").fault(of: scalar.text) { throw ValueError(fault) }
        return scalar.text
    }

    fileprivate static let pattern = ValueKind(name: "a regular expression such as '[a-z]{2}'") {
        scalar throws(ValueError) in
        do throws(ParameterPattern.ValidationError) {
            _ = try ParameterPattern(scalar.text)
            return scalar.text
        } catch {
            throw ValueError(error.message, remedy: error.remedy)
        }
    }
}
