import FreshetModel

/// A parameter of a pipeline as its configuration declares it: a value of its source that can be changed while the
/// daemon runs.
package struct ParameterDefinition: Hashable, Sendable {
    /// The values that are allowed, within ``ParameterLimits``.
    package enum Rule: Hashable, Sendable {
        case any
        /// One of these.
        case choices([String])
        /// The whole value matches this valid pattern.
        case pattern(String)
    }

    /// Letters, digits, `-` and `_`; the first character is neither a digit nor `-`.
    package var name: String
    /// The value while no other value is set; it satisfies the rule.
    package var defaultValue: String
    package var rule: Rule
    /// The quiet period: a change takes effect when this time has passed without another change.
    package var quiet: Duration

    package init(_ name: String, default defaultValue: String, rule: Rule = .any, quiet: Duration = .zero) {
        self.name = name
        self.defaultValue = defaultValue
        self.rule = rule
        self.quiet = quiet
    }

    /// Whether its values are secrets, by its name: they are never shown.
    package var isSecret: Bool { SecretName.matches(name) }

    /// Why a value is invalid: the rest of a sentence whose subject is the parameter; nil: the value is valid.
    package func error(of value: String) -> String? {
        if value.utf8.count > ParameterLimits.valueBytes {
            return "is longer than \(ParameterLimits.valueBytes) bytes"
        }
        guard !value.unicodeScalars.contains(where: ParameterLimits.isControl) else {
            return "contains a control character, such as a line break"
        }
        switch rule {
        case .any: return nil
        case .choices(let choices):
            if choices.contains(where: { $0.hasSameBytes(as: value) }) { return nil }
            return isSecret ? "is not one of its choices" : "has to be one of \(choices.joined(separator: ", "))"
        case .pattern(let text):
            do throws(ParameterPattern.ValidationError) {
                return try ParameterPattern(text).matches(value) ? nil : "has to match the pattern \(text)"
            } catch {
                return "cannot be compared with the pattern \(text), which \(error.message)"
            }
        }
    }
}

/// The limits on parameters.
package enum ParameterLimits {
    /// The most parameters of one pipeline.
    package static let perPipeline = 64
    /// The most bytes of a value.
    package static let valueBytes = 1024
    /// The most bytes of a name.
    package static let nameBytes = 64
    /// The most choices of one parameter.
    package static let choices = 256
    /// The most bytes of a pattern.
    package static let patternBytes = 1024

    /// Whether a character is not allowed in values: a control character, or one that changes how the text around it is
    /// shown.
    package static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
        }
    }
}

/// One value for each parameter of a pipeline; a run uses one set of values.
package struct ParameterValues: Hashable, Sendable {
    private var values: [String: String]

    package init(_ values: [String: String] = [:]) { self.values = values }

    package subscript(name: String) -> String? { values[name] }

    var isEmpty: Bool { values.isEmpty }

    /// The value of a placeholder; nil: the placeholder names no parameter.
    package func value(_ placeholder: URLTemplate.Placeholder) -> String? {
        placeholder.path.isEmpty ? values[placeholder.name] : nil
    }

    /// The names of the parameters whose values differ from those in `other`, sorted.
    package func names(unlike other: ParameterValues) -> [String] {
        Set(values.keys).union(other.values.keys).filter { name in
            guard let value = values[name], let otherValue = other.values[name] else { return true }
            return !value.hasSameBytes(as: otherValue)
        }.sorted()
    }

    /// Canonically equivalent values are different: a source gets different bytes.
    package static func == (one: Self, other: Self) -> Bool { one.values.hasSameBytes(as: other.values) }
}

/// A requested change of a parameter: to this value, or with nil to the default.
package struct ParameterChange: Hashable, Sendable {
    package var name: String
    package var value: String?

    package init(_ name: String, to value: String?) {
        self.name = name
        self.value = value
    }
}

/// Why a value is refused.
package struct ParameterError: Hashable, Sendable {
    package var name: String
    package var reason: Reason

    package enum Reason: Hashable, Sendable {
        /// There is no such parameter; the existing ones.
        case unknown([String])
        /// The rest of a sentence whose subject is the parameter.
        case error(String)
    }
}

/// Why a change is refused as a whole: at least one of its values is refused.
package struct ParameterErrors: Error, Hashable, Sendable {
    package var refusals: [ParameterError]
}

/// The values that are set for a pipeline's parameters; the other parameters have their defaults.
package struct ParameterSettings: Hashable, Sendable {
    /// The set values, by parameter name.
    package private(set) var set: [String: String]

    /// Takes the stored values that are valid for the configuration. If each value is valid, but not together with the
    /// others, all are dropped, since no single value is invalid.
    package init(remembered: [String: String] = [:], for definition: PipelineDefinition) {
        set = remembered.filter { name, value in
            definition.parameters.contains { $0.name == name && $0.error(of: value) == nil }
        }
        if !set.isEmpty, definition.error(with: values(for: definition)) != nil { set = [:] }
    }

    /// All parameters' values.
    package func values(for definition: PipelineDefinition) -> ParameterValues {
        var values: [String: String] = [:]
        for parameter in definition.parameters {
            values[parameter.name] = set[parameter.name] ?? parameter.defaultValue
        }
        return ParameterValues(values)
    }

    /// Applies all changes, or none of them.
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
            if let value = change.value, let error = parameter.error(of: value) {
                refusals.append(ParameterError(name: change.name, reason: .error(error)))
            }
            new.set[change.name] = change.value
        }
        if refusals.isEmpty, let (name, error) = definition.error(with: new.values(for: definition)) {
            refusals.append(ParameterError(name: name ?? changes.first?.name ?? "", reason: .error(error)))
        }
        guard refusals.isEmpty else { throw ParameterErrors(refusals: refusals) }
        self = new
    }

    /// Returns all parameters to their defaults.
    package mutating func clear() { set = [:] }
}
