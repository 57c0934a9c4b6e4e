/// A parameter of a pipeline.
package struct ParameterStatus: Codable, Hashable, Sendable {
    package var name: String
    /// Nil if it is a secret.
    package var value: String?
    /// Nil if it is a secret.
    package var `default`: String?
    /// Whether it has been set; otherwise it has its default.
    package var isSet: Bool
    /// The allowed values; nil: no list is configured.
    package var choices: [String]?
    /// The regular expression that the whole value must match; nil: no expression.
    package var pattern: String?
    /// The quiet period: how long no parameter may change before a change takes effect.
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

/// A parameter and its new value; nil: its default.
package struct ParameterSetting: Codable, Hashable, Sendable {
    package var parameter: String
    package var value: String?

    package init(_ parameter: String, _ value: String?) {
        self.parameter = parameter
        self.value = value
    }
}

/// A parameter whose new value is invalid, and why.
package struct InvalidSetting: Codable, Hashable, Sendable {
    package var parameter: String
    /// The rest of a sentence that begins with the parameter, such as `has to be one of en, de`.
    package var reason: String

    package init(parameter: String, reason: String) {
        self.parameter = parameter
        self.reason = reason
    }
}
