/// A parameter of a pipeline.
package struct ParameterStatus: Codable, Hashable, Sendable {
    package var name: String
    /// Nil if it is a secret.
    package var value: String?
    /// Nil if it is a secret.
    package var `default`: String?
    /// Somebody set it; else it has its default.
    package var isSet: Bool
    /// What it may be; nil: no list says.
    package var choices: [String]?
    /// The regular expression that the whole of it matches; nil: none.
    package var pattern: String?
    /// How long nothing is changed before a change is acted on.
    package var quietUSec: Int64

    package init(
        name: String, value: String? = nil, default defaultValue: String? = nil, isSet: Bool = false,
        choices: [String]? = nil, pattern: String? = nil, quietUSec: Int64 = 0
    ) {
        self.name = name
        self.value = value
        self.default = defaultValue
        self.isSet = isSet
        self.choices = choices
        self.pattern = pattern
        self.quietUSec = quietUSec
    }
}

/// A parameter, and the value that it is to have; nil: its default.
package struct ParameterSetting: Codable, Hashable, Sendable {
    package var parameter: String
    package var value: String?

    package init(_ parameter: String, _ value: String?) {
        self.parameter = parameter
        self.value = value
    }
}

/// A value that is not taken, and why.
package struct InvalidSetting: Codable, Hashable, Sendable {
    package var parameter: String
    /// The rest of a sentence that begins with the parameter, such as `has to be one of en, de`.
    package var reason: String

    package init(parameter: String, reason: String) {
        self.parameter = parameter
        self.reason = reason
    }
}
