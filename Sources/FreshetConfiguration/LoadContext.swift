package import FreshetPipelines

/// The inputs of a configuration that are not in its files.
package struct LoadContext: Sendable {
    /// The default of `refresh.on`.
    package var defaultSignals: Set<StandardSignal>
    /// Why the bus would refuse a match, as a message; nil if the bus accepts it. The daemon knows the rules of D-Bus,
    /// and this module does not. A match with a single part checks that part.
    package var busError: @Sendable (BusSignalMatch) -> String?

    package init(
        defaultSignals: Set<StandardSignal> = StandardSignal.systemDefault,
        busError: @escaping @Sendable (BusSignalMatch) -> String? = { _ in nil }
    ) {
        self.defaultSignals = defaultSignals
        self.busError = busError
    }
}
