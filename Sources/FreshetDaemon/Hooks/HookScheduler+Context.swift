import FreshetCache
import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemSignals
import FreshetSystemd

extension HookScheduler {
    /// Creates the scheduler of a daemon. Its files need ``ProgramInputFiles/prepareAll(in:)``.
    ///
    /// - Parameter bus: the system bus, for hooks that reload a unit.
    convenience init(
        _ context: DaemonContext, _ store: CacheStore, _ bus: BusConnection, _ fleet: FleetService,
        _ status: StatusReporter
    ) {
        let files = ProgramInputFiles.hooks(context.directories)
        let identity = MachineIdentity.read()?.bytes ?? MachineIdentity.hostName
        // A single run ends with its hooks, so nothing waits.
        let isSplayed = !context.options.once
        let transformer = JQTransformer(context.loop, workers: context.pools.helpers)
        self.init(
            Dependencies(
                store: store,
                difference: { [loop = context.loop] old, new, key in
                    try? await ContentDifference.between(old, and: new, key: key, by: transformer, on: loop)
                },
                programs: TrustedPrograms(context),
                units: UnitReloader(
                    context.loop, bus, isPersonal: !context.options.isSystemService, clock: context.clock),
                workers: context.pools.programs, files: files, clock: context.clock, log: context.log,
                limiter: context.limiter, redactor: context.redactor, readers: context.readers,
                adopt: { [tasks = context.tasks] in tasks.add($0) },
                ended: { [tasks = context.tasks] pipeline, digest, error in
                    if fleet.hasClient { tasks.add { await fleet.hookEnded(pipeline, digest, error: error) } }
                },
                published: { [tasks = context.tasks] pipeline, generation in
                    if fleet.hasClient { tasks.add { await fleet.published(pipeline, generation) } }
                },
                statusChanged: { status.mayHaveChanged() }),
            seed: UInt64.random(in: 0 ... .max),
            share: { isSplayed ? StableDelay.fraction(identity: identity, name: "hooks of \($0)") : 0 })
        // The single run knows when the last pipeline has changed.
        if context.options.once { holdBursts() }
    }
}

extension TrustedPrograms {
    /// Runs the programs of hooks and checks of a daemon.
    init(_ context: DaemonContext) {
        self.init(
            commands: CommandRunner(context.loop, workers: context.pools.programs), workers: context.pools.programs,
            trust: context.options.trust)
    }
}
