/// The dependencies of pipelines; all pipelines share them.
package final class EngineDependencies: Sendable {
    package let fetcher: any Fetching
    package let transformer: any Transforming
    package let store: any SnapshotStore
    package let clock: any EngineClock
    package let requestLimiter: RequestLimiter
    /// Nil: there is no limit on memory, and answers for programs are kept in memory.
    package let memory: MemoryBudget?
    /// Nil: proofs are not possible, and a pipeline with a probe waits.
    package let prober: (any Probing)?
    /// Nil: each pipeline requests its content itself.
    package let sharing: (any ContentSharing)?
    package let helpers: CheckHelpers
    /// Nil: unpacking is not possible, and a pipeline that needs it fails.
    package let unpacker: (any Unpacking)?
    /// Redacts secrets in a failure's message before it is reported.
    package let redact: @Sendable (String) -> String
    /// The permits of the run that uses these dependencies; nil: no single run uses them, or its requests are not
    /// limited.
    private let permits: RunPermits?

    package init(
        fetcher: any Fetching, transformer: any Transforming, store: any SnapshotStore, clock: any EngineClock,
        requestLimiter: RequestLimiter, memory: MemoryBudget? = nil, prober: (any Probing)? = nil,
        sharing: (any ContentSharing)? = nil, helpers: CheckHelpers = CheckHelpers(),
        unpacker: (any Unpacking)? = nil,
        redact: @escaping @Sendable (String) -> String = { $0 }
    ) {
        self.helpers = helpers
        self.unpacker = unpacker
        self.fetcher = fetcher
        self.transformer = transformer
        self.store = store
        self.clock = clock
        self.requestLimiter = requestLimiter
        self.memory = memory
        self.prober = prober
        self.sharing = sharing
        self.redact = redact
        permits = nil
    }

    private init(
        _ world: EngineDependencies, _ fetcher: any Fetching, _ transformer: any Transforming, _ permits: RunPermits?
    ) {
        self.fetcher = fetcher
        self.transformer = transformer
        store = world.store
        clock = world.clock
        requestLimiter = world.requestLimiter
        memory = world.memory
        prober = world.prober
        sharing = world.sharing
        helpers = world.helpers
        unpacker = world.unpacker
        redact = world.redact
        self.permits = permits
    }

    /// The same dependencies for one run, whose requests need permits.
    func with(_ permits: RunPermits) -> EngineDependencies {
        EngineDependencies(
            self, LimitedFetcher(fetcher: fetcher, permits: permits), transformer.share(of: permits.pipeline), permits)
    }

    /// The same dependencies with the memory of a reservation.
    func using(_ memory: MemoryReservation) -> EngineDependencies {
        EngineDependencies(self, fetcher, transformer.using(memory), permits)
    }

    /// Waits for the memory for work on an answer. Nil: there is no limit.
    ///
    /// - Parameter input: the size of the answer in bytes.
    func reserve(for input: Int, _ level: MemoryShare.Level) async throws(FetchError) -> MemoryReservation? {
        guard let memory else { return nil }
        guard let permits else { return try await memory.reserve(for: input, level) }
        let wait = MemoryWait(permits)
        defer { wait.end() }
        return try await memory.reserve(for: input, level) { wait.begin($0) }
    }

    /// Runs work in which the run keeps no permit.
    func pausing<Result>(
        _ work: () async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        guard let permits else { return try await work() }
        return try await permits.pausing(work)
    }

    /// Returns when this time has passed, or when the task is cancelled.
    func pause(for duration: Duration) async {
        guard let permits else { return await clock.pause(for: duration) }
        await permits.pause { await clock.pause(for: duration) }
    }
}
