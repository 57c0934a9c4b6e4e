import FreshetPipelines

/// Reads `parameters`.
struct ParameterReader {
    let reader: DefinitionReader

    /// The longest `quiet` of a parameter: the client that set the parameter waits for it.
    static let longestParameterQuiet: Duration = .seconds(3600)

    /// Reads the parameters below `parameters`, in their order.
    func readParameters(in file: Section) {
        guard let entry = file["parameters"] else { return }
        guard case .mapping(let entries) = entry.value.content else {
            if case .invalid = entry.value.content { return }
            reader.addError(
                entry.value.location, "parameters",
                "'parameters' has to contain names with keys, not \(entry.value.kind)",
                remedy: "write parameters: {language: {default: en}}")
            return
        }
        let present = entries.filter { if case .removed = $0.value.content { false } else { true } }
        reader.parameterNames = present.map(\.key)
        guard present.count <= ParameterLimits.perPipeline else {
            reader.addError(
                entry.location, "parameters", "there are more than \(ParameterLimits.perPipeline) parameters")
            return
        }
        reader.parameters = present.compactMap { parameter($0) }
    }

    private func parameter(_ entry: Node.Entry) -> ParameterDefinition? {
        let path = "parameters.\(entry.key)"
        guard URLTemplate.isName(entry.key[...]), entry.key.utf8.count <= ParameterLimits.nameBytes else {
            reader.addError(
                entry.location, path, "\(entry.key.quoted) cannot be the name of a parameter",
                remedy: "use at most \(ParameterLimits.nameBytes) letters, digits, '-' and '_', beginning with a "
                    + "letter or '_'")
            return nil
        }
        let subject = "the parameter '\(entry.key)'"
        guard let section = reader.section(.parameter, entry.value, keyPath: path, subject: subject) else { return nil }
        let rule = rule(in: section, path)
        let quiet = section["quiet"].flatMap {
            reader.value(
                of: $0.value, key: "quiet", keyPath: "\(path).quiet",
                .duration(Duration.zero...Self.longestParameterQuiet))
        }
        guard let defaultEntry = section["default"] else {
            reader.missing(
                section.location, "\(path).default", "\(subject) has no 'default'",
                remedy: "add the value that it has until it is set; the value may be empty: default: \"\"")
            return nil
        }
        guard let rule,
            let text = reader.value(of: defaultEntry.value, key: "default", keyPath: "\(path).default", .parameterValue)
        else { return nil }
        let parameter = ParameterDefinition(entry.key, default: text, rule: rule, quiet: quiet ?? .zero)
        if let error = parameter.error(of: text) {
            reader.addError(
                defaultEntry.value.location, "\(path).default", "the default of '\(entry.key)' \(error)",
                remedy: "change the default to an allowed value")
            return nil
        }
        return parameter
    }

    /// The rule for a parameter's values; nil if it is invalid.
    private func rule(in section: Section, _ path: String) -> ParameterDefinition.Rule? {
        if let choices = section["choices"], let pattern = section["pattern"] {
            reader.addError(
                pattern.location, "\(path).pattern", "'pattern' and 'choices' exclude each other",
                remedy: "keep one", related: choices.location)
            return nil
        }
        if let entry = section["pattern"] {
            return reader.value(of: entry.value, key: "pattern", keyPath: "\(path).pattern", .pattern).map {
                .pattern($0)
            }
        }
        guard let entry = section["choices"] else { return .any }
        guard case .sequence(let nodes) = entry.value.content, (1...ParameterLimits.choices).contains(nodes.count)
        else {
            if case .invalid = entry.value.content { return nil }
            reader.addError(
                entry.value.location, "\(path).choices",
                "'choices' has to be a list of 1 to \(ParameterLimits.choices) texts")
            return nil
        }
        let before = reader.errors.count
        var choices: [String] = []
        for node in nodes {
            guard let choice = reader.value(of: node, key: "choices", keyPath: "\(path).choices", .parameterValue)
            else {
                continue
            }
            if choices.contains(choice) {
                reader.warning(node.location, "\(path).choices", "a choice appears twice", remedy: "remove one of them")
            } else {
                choices.append(choice)
            }
        }
        return reader.errors[before...].contains { $0.severity == .error } ? nil : .choices(choices)
    }
}

extension ValueKind where Value == String {
    /// A value of a parameter, which may be empty if it is quoted.
    fileprivate static let parameterValue = ValueKind(name: "text") { scalar throws(ValueError) in
        if let error = ParameterDefinition("", default: "").error(of: scalar.text) { throw ValueError(error) }
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
