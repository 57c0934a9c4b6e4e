import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemSignals

/// Makes the status line from the state of the daemon's parts.
@DaemonActor
struct StatusComposer {
    /// The status line shows work on files that takes longer than this.
    static let slowDisk: Duration = .seconds(5)

    let context: DaemonContext
    let parts: DaemonParts
    let overview: PipelineOverview
    let networks: NetworkSources
    let reloader: ConfigurationReloader

    /// The status line with the current values.
    func line() async -> String {
        var line = StatusLine()
        await overview.update()
        for (name, failure) in overview.failures {
            line.add(name) { (context.readers.isPublic(name) ? failure.reason : failure.publicReason, failure.since) }
        }
        let now = WallClock.now
        line.counts = overview.counts
        line.expired = overview.expired
        line.withdrawn = overview.withdrawn
        line.next = overview.next().map { ($0.pipeline, WallClock.microseconds(at: $0.at)) }
        line.failingHooks = parts.hooks.failing
        line.invalidHooks = reloader.invalidHooks.map(\.name)
        line.refusedReload = reloader.refused
        line.network = networks.elsewhere.watch.fact.description
        let work = [context.pools.oldestRunning, parts.store.committers.oldestRunning].compactMap(\.self).min {
            $0.since < $1.since
        }
        if let work {
            let time = ContinuousClock.now - work.since
            if time >= Self.slowDisk { line.slowDisk = (work.name, time.components.seconds) }
        }
        return line.text(now: now, offset: WallClock.offset(at: now))
    }
}
