import FreshetCache
import FreshetConfiguration
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import Logging

/// Opens the cache at the start of the daemon.
struct CacheOpening: Sendable {
    let cache: LocalCache
    let store: CacheStore
    /// The index is new, so the last successful runs of hooks are unknown.
    let isIndexNew: Bool

    /// An open cache in which pipelines have no files yet.
    struct Opened: Sendable {
        let cache: LocalCache
        let report: RecoveryReport
        /// The stored states of all pipelines.
        let states: CacheStore.EarlyStates
        let repairs: CopyRepairs
    }

    /// Creates the daemon's directories, and opens and repairs the cache. This needs no pipeline, so their files can be
    /// read meanwhile.
    ///
    /// - Parameters:
    ///   - removed: logs content that the cache removes to free space.
    ///   - repairs: gets what becomes of changes that failed halfway.
    ///   - helpers: other threads for the comparison of the index with the files.
    static func open(
        _ context: DaemonContext, _ daemon: DaemonDefinition, _ removed: RemovedContentLog, _ repairs: CopyRepairs,
        with helpers: StartHelpers = .none
    ) async throws -> Opened {
        let (directories, log, limiter) = (context.directories, context.log, context.limiter)
        try DaemonDirectories.make(directories.state, mode: 0o700)
        try DaemonDirectories.make(directories.cache, mode: 0o755)
        try DaemonDirectories.make(directories.runtime, mode: 0o755)
        let quota = CacheQuota(daemon)
        let (cache, report, states) = try await context.pools.cache.run { () throws(CacheError) in
            let (cache, report) = try LocalCache.open(
                cacheDirectory: directories.cache, stateDirectory: directories.state, reserve: quota.reserve,
                limit: quota.limit, directories: ProgramInputFiles.directoryNames, removed: { removed.log($0) },
                rebuilt: { IndexLog(log).log($0, at: $1) },
                unrecorded: { pipeline, error in
                    limiter.log(.cacheUpdateFailed, [.pipeline: .string(pipeline), .error: .string(error.description)])
                }, changes: repairs.changes, helpers: helpers,
                memoriesKey: CacheStore.bindingKey)
            return (cache, report, CacheStore.EarlyStates(CacheStore.remembered(in: cache)))
        }
        return Opened(cache: cache, report: report, states: states, repairs: repairs)
    }

    /// Gives each pipeline its files.
    ///
    /// - Parameter commits: fires for a pipeline whose generation is published again.
    init(
        _ opened: Opened, _ context: DaemonContext, _ configuration: Configuration, _ commits: CommitSignals
    ) async throws {
        let (cache, report, repairs) = (opened.cache, opened.report, opened.repairs)
        let (log, limiter) = (context.log, context.limiter)
        Self.log(report, at: cache.indexPath, log, limiter)
        let definitions = configuration.pipelines
        let moved = try await context.pools.cache.run { () throws(CacheError) in try cache.assign(definitions) }
        self.cache = cache
        let writer = RecordWriter(cache, context.pools.cache, context.clock) { error in
            limiter.log(.cacheUpdateFailed, [.pipeline: "none", .error: .string(error.description)])
        }
        context.tasks.addAtEnd { cache.limitWaits(to: Self.longestWaitAtEnd) }
        // A pipeline with another file has another state than before.
        if !moved.isEmpty { opened.states.forget() }
        store = CacheStore(cache: cache, workers: context.pools.cache, early: opened.states) { pipeline, error in
            // At the end, the cache reports all of this together.
            if cache.isEnding, error.isTransient { return }
            limiter.log(.cacheUpdateFailed, [.pipeline: .string(pipeline), .error: .string(error.description)])
        } heldBack: { pipeline, copy in
            limiter.log(.heldBack, [.pipeline: .string(pipeline), .generation: .stringConvertible(copy.number)])
        } restored: { pipeline, copy in
            limiter.log(
                .cacheRepaired,
                [
                    .pipeline: .string(pipeline),
                    .repairs: .string(PipelineRecovery.Repair.restored(Int64(clamping: copy.number)).description),
                ])
        } notRestored: { pipeline, error in
            limiter.log(
                .notRestored, text: error.isOfIndex ? Self.notRecorded : nil,
                [.pipeline: .string(pipeline), .error: .string(error.description)])
            repairs.retry(pipeline)
        } republished: { pipeline, copy in
            commits.fireAgain(pipeline, copy)
        } recordsWait: {
            writer.schedule($0)
        } goesToSleep: {
            writer.write()
        }
        switch report.index {
        case .made, .rebuilt: isIndexNew = true
        case .opened, .migrated: isIndexNew = false
        }
    }

    /// How long a daemon that stops waits in all for another process that has locked the index.
    private static let longestWaitAtEnd = Duration.seconds(5)

    /// The text of ``JournalMessage/notRestored`` if the files are right, and the index does not agree with them.
    private static let notRecorded: Logger.Message =
        "the index cannot record which content readers see; Freshet tries again: {error}"

    /// Logs what the cache found and repaired at the start.
    private static func log(_ report: RecoveryReport, at path: String, _ log: Logger, _ limiter: LogLimiter) {
        IndexLog(log).log(report, at: path)
        if !report.strays.isEmpty {
            let strays = report.strays.map(\.description).joined(separator: "; ")
            log.log(.cacheRepaired, [.pipeline: "none", .repairs: .string(strays)])
        }
        for recovery in report.pipelines {
            limiter.log(
                .cacheRepaired,
                [
                    .pipeline: .string(recovery.pipeline),
                    .repairs: .string(recovery.repairs.map(\.description).joined(separator: "; ")),
                ])
        }
        limiter.finish(.cacheRepaired)
    }
}
