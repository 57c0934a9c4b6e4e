package import FreshetPipelines

/// What configuration is read with that is not in its files.
package struct LoadContext: Sendable {
    /// What `refresh.on` is where it is not configured.
    package var defaultSignals: Set<StandardSignal>
    /// Why a bus would not take a match, as a sentence for people; nil: it would. Whoever talks to the bus knows its
    /// rules; a match with one part alone is that part's trial.
    package var busFault: @Sendable (BusSignalMatch) -> String?

    package init(
        defaultSignals: Set<StandardSignal> = StandardSignal.systemDefault,
        busFault: @escaping @Sendable (BusSignalMatch) -> String? = { _ in nil }
    ) {
        self.defaultSignals = defaultSignals
        self.busFault = busFault
    }
}
