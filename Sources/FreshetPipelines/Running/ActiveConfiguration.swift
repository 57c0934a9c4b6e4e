/// The active configuration of a pipeline, and the values of its parameters.
struct ActiveConfiguration: Sendable {
    private(set) var definition: PipelineDefinition {
        didSet { knownBinding = (0, 0) }
    }
    private(set) var parameters: ParameterSettings
    /// Set parameters that are not valid with the configuration any more, not reported yet.
    private var dropped: [String] = []
    /// The binding's hash if the definition has no parameters; zero: there was no run yet. A run that makes a text to keep
    /// would leave it between blocks that it frees.
    private var knownBinding: (high: UInt64, low: UInt64) = (0, 0)

    /// - Parameter remembered: the stored values of the parameters.
    init(_ definition: PipelineDefinition, remembered: [String: String]) {
        self.definition = definition
        parameters = ParameterSettings(for: definition)
        set(remembered)
    }

    /// The values of all parameters.
    var values: ParameterValues { parameters.values(for: definition) }

    /// The ``PipelineDefinition/validatorBinding(with:)`` of the definition, if it is the same for each run; nil: it depends
    /// on parameters.
    mutating func binding() -> String? {
        guard definition.parameters.isEmpty else { return nil }
        if knownBinding == (0, 0) {
            let hash = definition.validatorHash(with: ParameterValues()).value
            knownBinding = (UInt64(truncatingIfNeeded: hash >> 64), UInt64(truncatingIfNeeded: hash))
        }
        return BindingHash.text(of: UInt128(knownBinding.high) << 64 | UInt128(knownBinding.low))
    }

    /// Takes the names of the parameters that were dropped, sorted.
    mutating func takeDropped() -> [String] {
        defer { dropped = [] }
        return dropped
    }

    /// Activates another configuration.
    ///
    /// - Returns: whether a run of the old one has the same result as one of the new one.
    mutating func replace(by new: PipelineDefinition) -> Bool {
        let (before, valuesBefore) = (definition, values)
        definition = new
        set(parameters.set)
        return values == valuesBefore && new.makesTheSame(as: before)
    }

    private mutating func set(_ values: [String: String]) {
        parameters = ParameterSettings(remembered: values, for: definition)
        dropped += values.keys.filter { parameters.set[$0] == nil }.sorted()
    }

    /// Applies all changes of parameters, or none of them.
    ///
    /// - Parameter othersToDefault: whether parameters without a change return to their defaults.
    /// - Returns: the names of the parameters with another value now, sorted, and the longest of their quiet periods.
    mutating func apply(
        _ changes: [ParameterChange], othersToDefault: Bool
    ) throws(ParameterErrors) -> (changed: [String], quiet: Duration) {
        var settings = parameters
        if othersToDefault { settings.clear() }
        try settings.apply(changes, for: definition)
        let changed = settings.values(for: definition).names(unlike: values)
        parameters = settings
        return (changed, definition.parameters.filter { changed.contains($0.name) }.map(\.quiet).max() ?? .zero)
    }
}
