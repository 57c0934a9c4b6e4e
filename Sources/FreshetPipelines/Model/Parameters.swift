/// A parameter of a pipeline: something of its source that can be changed while the daemon runs, as its configuration
/// declares it.
package struct ParameterDefinition: Hashable, Sendable {
    /// What a value has to be, besides ``ParameterLimits``.
    package enum Rule: Hashable, Sendable {
        case any
        /// One of these.
        case choices([String])
        /// All of it matches this; it is a sound one.
        case pattern(String)
    }

    /// Letters, digits, `-` and `_`, and no digit or `-` first.
    package var name: String
    /// What it is as long as nobody sets it; satisfies the rule.
    package var defaultValue: String
    package var rule: Rule
    /// How long nothing is changed before a change is acted on.
    package var quiet: Duration

    package init(_ name: String, default defaultValue: String, rule: Rule = .any, quiet: Duration = .zero) {
        self.name = name
        self.defaultValue = defaultValue
        self.rule = rule
        self.quiet = quiet
    }

    /// Its values are secrets, by its name: they are shown nowhere.
    package var isSecret: Bool { SecretName.matches(name) }

    /// What is wrong with a value: the rest of a sentence that begins with the parameter; nil: nothing.
    package func fault(of value: String) -> String? {
        if value.utf8.count > ParameterLimits.valueBytes {
            return "is longer than \(ParameterLimits.valueBytes) bytes"
        }
        guard !value.unicodeScalars.contains(where: ParameterLimits.isControl) else {
            return "holds a control character, such as a line break"
        }
        switch rule {
        case .any: return nil
        case .choices(let choices):
            if choices.contains(value) { return nil }
            return isSecret ? "is none of its choices" : "has to be one of \(choices.joined(separator: ", "))"
        case .pattern(let text):
            do throws(ParameterPattern.ValidationError) {
                return try ParameterPattern(text).matches(value) ? nil : "has to match the pattern \(text)"
            } catch {
                return "cannot be compared with the pattern \(text), which \(error.message)"
            }
        }
    }
}

/// What bounds parameters.
package enum ParameterLimits {
    /// Parameters of one pipeline.
    package static let perPipeline = 64
    /// Bytes of a value.
    package static let valueBytes = 1024
    /// Bytes of a name.
    package static let nameBytes = 64
    /// Choices of one parameter.
    package static let choices = 256
    /// Bytes of a pattern.
    package static let patternBytes = 1024

    /// What no value holds: control characters, and those that change how the text around them is shown.
    package static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
        }
    }
}

/// One value for each parameter of a pipeline: what a run is made with.
package struct ParameterValues: Hashable, Sendable {
    private var values: [String: String]

    package init(_ values: [String: String] = [:]) { self.values = values }

    package subscript(name: String) -> String? { values[name] }

    /// What stands at a place of a source; nil: it is none of a parameter.
    package func value(_ place: URLTemplate.Place) -> String? {
        place.path.isEmpty ? values[place.name] : nil
    }

    /// The parameters that are another one's in `other`, by name.
    package func names(unlike other: ParameterValues) -> [String] {
        Set(values.keys).union(other.values.keys).filter { values[$0] != other.values[$0] }.sorted()
    }
}

/// A change that somebody asks for: to this value, or with nil to the default.
package struct ParameterChange: Hashable, Sendable {
    package var name: String
    package var value: String?

    package init(_ name: String, to value: String?) {
        self.name = name
        self.value = value
    }
}

/// Why a value is not taken.
package struct ParameterError: Hashable, Sendable {
    package var name: String
    package var reason: Reason

    package enum Reason: Hashable, Sendable {
        /// There is no such parameter; these there are.
        case unknown([String])
        /// The rest of a sentence that begins with the parameter.
        case fault(String)
    }
}

/// Why a change is refused, as a whole: at least one of its values is not taken.
package struct ParameterErrors: Error, Hashable, Sendable {
    package var refusals: [ParameterError]
}

/// What is set of a pipeline's parameters; the others have their defaults.
package struct ParameterSettings: Hashable, Sendable {
    /// By the parameters' names.
    package private(set) var set: [String: String]

    /// What is remembered, as far as it holds with the configuration. Values that each hold and do not fit together are
    /// all dropped: it is the fault of none in particular.
    package init(remembered: [String: String] = [:], for definition: PipelineDefinition) {
        set = remembered.filter { name, value in
            definition.parameters.contains { $0.name == name && $0.fault(of: value) == nil }
        }
        if !set.isEmpty, definition.fault(with: values(for: definition)) != nil { set = [:] }
    }

    /// All parameters' values.
    package func values(for definition: PipelineDefinition) -> ParameterValues {
        var values: [String: String] = [:]
        for parameter in definition.parameters {
            values[parameter.name] = set[parameter.name] ?? parameter.defaultValue
        }
        return ParameterValues(values)
    }

    /// Applies changes together, or none of them.
    package mutating func apply(
        _ changes: [ParameterChange], for definition: PipelineDefinition
    ) throws(ParameterErrors) {
        var refusals: [ParameterError] = []
        var new = self
        for change in changes {
            guard let parameter = definition.parameters.first(where: { $0.name == change.name }) else {
                refusals.append(
                    ParameterError(name: change.name, reason: .unknown(definition.parameters.map(\.name))))
                continue
            }
            if let value = change.value, let fault = parameter.fault(of: value) {
                refusals.append(ParameterError(name: change.name, reason: .fault(fault)))
            }
            new.set[change.name] = change.value
        }
        if refusals.isEmpty, let (name, fault) = definition.fault(with: new.values(for: definition)) {
            refusals.append(ParameterError(name: name ?? changes.first?.name ?? "", reason: .fault(fault)))
        }
        guard refusals.isEmpty else { throw ParameterErrors(refusals: refusals) }
        self = new
    }

    /// All back to the defaults.
    package mutating func clear() { set = [:] }
}
