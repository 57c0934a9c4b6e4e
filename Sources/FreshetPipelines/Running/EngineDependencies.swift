/// What pipelines need of the world: one value for all of them.
package final class EngineDependencies: Sendable {
    package let fetcher: any Fetching
    package let transformer: any Transforming
    package let store: any SnapshotStore
    package let clock: any EngineClock
    package let slots: RequestLimiter
    /// Nil: no limit on memory, and answers that programs work on are in memory.
    package let memory: MemoryBudget?
    /// Nil: nobody can ask, and a pipeline with a probe waits.
    package let prober: (any Probing)?
    package let helpers: CheckHelpers
    /// Takes secrets out of a failure's message, before anybody is told of it.
    package let redact: @Sendable (String) -> String
    /// Those of the run whose world it is; nil: its requests are not counted, or it is nobody's own.
    private let places: RunPermits?

    package init(
        fetcher: any Fetching, transformer: any Transforming, store: any SnapshotStore, clock: any EngineClock,
        slots: RequestLimiter, memory: MemoryBudget? = nil, prober: (any Probing)? = nil,
        helpers: CheckHelpers = CheckHelpers(),
        redact: @escaping @Sendable (String) -> String = { $0 }
    ) {
        self.helpers = helpers
        self.fetcher = fetcher
        self.transformer = transformer
        self.store = store
        self.clock = clock
        self.slots = slots
        self.memory = memory
        self.prober = prober
        self.redact = redact
        places = nil
    }

    private init(
        _ world: EngineDependencies, _ fetcher: any Fetching, _ transformer: any Transforming, _ places: RunPermits?
    ) {
        self.fetcher = fetcher
        self.transformer = transformer
        store = world.store
        clock = world.clock
        slots = world.slots
        memory = world.memory
        prober = world.prober
        helpers = world.helpers
        redact = world.redact
        self.places = places
    }

    /// The same for one run, whose requests take places.
    func with(_ places: RunPermits) -> EngineDependencies {
        EngineDependencies(
            self, LimitedFetcher(fetcher: fetcher, places: places), transformer.share(of: places.pipeline), places)
    }

    /// The same with the memory of a reservation.
    func using(_ memory: MemoryReservation) -> EngineDependencies {
        EngineDependencies(self, fetcher, transformer.using(memory), places)
    }

    /// Waits for the memory to work on an answer. Nil: there is no limit.
    ///
    /// - Parameter input: the size of the answer in bytes.
    func reserve(for input: Int, _ level: MemoryShare.Level) async throws(FetchError) -> MemoryReservation? {
        guard let memory else { return nil }
        guard let places else { return try await memory.reserve(for: input, level) }
        let wait = MemoryWait(places)
        defer { wait.end() }
        return try await memory.reserve(for: input, level) { wait.begin($0) }
    }

    /// Returns when so much time has passed, or when the task is cancelled.
    func pause(for duration: Duration) async {
        guard let places else { return await clock.pause(for: duration) }
        await places.rest { await clock.pause(for: duration) }
    }
}
