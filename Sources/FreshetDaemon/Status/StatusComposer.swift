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
    let host: PipelineHost
    let networks: NetworkSources
    let reloader: ConfigurationReloader

    /// The status line with the current values.
    func line() async -> String {
        var line = StatusLine()
        var states: [PipelineState] = []
        for (name, error) in host.invalid { line.add(name) { (error.message, error.since) } }
        var next: (pipeline: String, at: ContinuousClock.Instant)?
        await host.forEachSnapshot("status line") { name, snapshot in
            states.append(PipelineState(snapshot.activity))
            if case .failed(let reason, let since, _) = snapshot.activity {
                line.add(name) {
                    (
                        context.readers.isPublic(name) ? reason.message : reason.publicMessage,
                        WallClock.microseconds(at: since)
                    )
                }
            }
            if snapshot.isWithdrawn {
                line.withdrawn.append(name)
            } else if snapshot.isExpired {
                line.expired.append(name)
            }
            if let planned = snapshot.next, next.map({ planned < $0.at }) ?? true { next = (name, planned) }
        }
        let now = WallClock.now
        line.counts = PipelineCounts(states + Array(repeating: .failed, count: host.invalid.count))
        line.next = next.map { ($0.pipeline, WallClock.microseconds(at: $0.at)) }
        line.failingHooks = parts.hooks.failing
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
