/// What pipelines need of the world: one value for all of them.
package struct PipelineWorld: Sendable {
    package var fetcher: any Fetching
    package var transformer: any Transforming
    package var store: any SnapshotStore
    package var clock: any EngineClock
    package var slots: RunSlots

    package init(
        fetcher: any Fetching, transformer: any Transforming, store: any SnapshotStore, clock: any EngineClock,
        slots: RunSlots
    ) {
        self.fetcher = fetcher
        self.transformer = transformer
        self.store = store
        self.clock = clock
        self.slots = slots
    }
}
