internal import FreshetSignals

/// The current state of a parameter.
package struct ParameterState: Hashable, Sendable {
    package var definition: ParameterDefinition
    package var value: String
    /// Whether a value is set; otherwise the parameter has its default.
    package var isSet: Bool
}

/// The pipeline's parameters, from any thread.
extension PipelineRunner {
    /// All parameters, in the order of the configuration.
    package var parameters: [ParameterState] {
        state.withLock { state in
            state.configuration.definition.parameters.map { definition in
                let value = state.configuration.parameters.set[definition.name]
                return ParameterState(
                    definition: definition, value: value ?? definition.defaultValue, isSet: value != nil)
            }
        }
    }

    /// The set values, by parameter name.
    package var setParameters: [String: String] { state.withLock { $0.configuration.parameters.set } }

    /// Changes parameters: all requested changes together, or none. It returns when the values are stored; a run that
    /// the change leads to starts after the longest quiet period of the changed parameters.
    ///
    /// - Parameter othersToDefault: whether parameters without a change return to their defaults.
    /// - Returns: the names of the parameters whose value has changed, sorted.
    package func change(
        _ changes: [ParameterChange], othersToDefault: Bool = false
    ) async throws(ParameterErrors) -> [String] {
        let changed = try state.withLock { state throws(ParameterErrors) in
            let (changed, quiet) = try state.configuration.apply(changes, othersToDefault: othersToDefault)
            // Posted under the lock, so that the machine gets the values in the order in which they were set.
            if !changed.isEmpty { mailbox.post(.parameters(state.configuration.values, quiet: quiet)) }
            return changed
        }
        await rememberParameters()
        return changed
    }

    /// Stores the set values.
    package func rememberParameters() async {
        await world.store.rememberParameters(name) { [self] in setParameters }
    }
}
