internal import FreshetSignals

/// A parameter as it is now.
package struct ParameterState: Hashable, Sendable {
    package var definition: ParameterDefinition
    package var value: String
    /// Somebody set it; else it has its default.
    package var isSet: Bool
}

/// The pipeline's parameters, from any thread.
extension PipelineRunner {
    /// In the order of the configuration.
    package var parameters: [ParameterState] {
        state.withLock { state in
            state.definition.parameters.map { definition in
                let value = state.parameters.set[definition.name]
                return ParameterState(
                    definition: definition, value: value ?? definition.defaultValue, isSet: value != nil)
            }
        }
    }

    /// What is set, by the parameters' names.
    package var setParameters: [String: String] { state.withLock { $0.parameters.set } }

    /// Changes parameters: all that is asked for together, or nothing. Returns when it is remembered; the run that comes
    /// of it, if one does, starts when it has been quiet for as long as the changed parameters want.
    ///
    /// - Parameter othersToDefault: those that are not named go back to their defaults.
    /// - Returns: the parameters that have another value now, by name.
    package func change(
        _ changes: [ParameterChange], othersToDefault: Bool = false
    ) async throws(ParameterErrors) -> [String] {
        let changed = try state.withLock { state throws(ParameterErrors) in
            var settings = state.parameters
            if othersToDefault { settings.clear() }
            try settings.apply(changes, for: state.definition)
            let values = settings.values(for: state.definition)
            let changed = values.names(unlike: state.parameters.values(for: state.definition))
            state.parameters = settings
            guard !changed.isEmpty else { return changed }
            let quiet = state.definition.parameters.filter { changed.contains($0.name) }.map(\.quiet).max() ?? .zero
            // Inside, so that the machine hears of values in the order in which they were set.
            mailbox.post(.parameters(values, quiet: quiet))
            return changed
        }
        await rememberParameters()
        return changed
    }

    /// Has the store remember what is set.
    package func rememberParameters() async {
        await world.store.rememberParameters(name) { [self] in setParameters }
    }
}
