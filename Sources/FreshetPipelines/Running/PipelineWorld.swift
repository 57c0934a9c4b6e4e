/// What pipelines need of the world: one value for all of them.
package final class PipelineWorld: Sendable {
    package let fetcher: any Fetching
    package let transformer: any Transforming
    package let store: any SnapshotStore
    package let clock: any EngineClock
    package let slots: RequestSlots
    /// Nil: nobody can ask, and a pipeline with a probe waits.
    package let prober: (any Probing)?
    /// Takes secrets out of a failure's message, before anybody is told of it.
    package let redact: @Sendable (String) -> String

    package init(
        fetcher: any Fetching, transformer: any Transforming, store: any SnapshotStore, clock: any EngineClock,
        slots: RequestSlots, prober: (any Probing)? = nil, redact: @escaping @Sendable (String) -> String = { $0 }
    ) {
        self.fetcher = fetcher
        self.transformer = transformer
        self.store = store
        self.clock = clock
        self.slots = slots
        self.prober = prober
        self.redact = redact
    }
}
