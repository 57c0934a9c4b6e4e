import FreshetPipelines
import FreshetSystemSignals

extension SignalRegistry {
    /// Adds the sources of the daemon, one line each.
    func addSources(
        _ context: DaemonContext, _ recorder: SignalRecorder, _ parts: DaemonParts, _ networks: NetworkSources,
        _ commits: CommitSignals, _ fileEvents: FileEventPublisher, _ standard: StandardSignals,
        _ status: StatusReporter, _ host: PipelineHost, _ overview: PipelineOverview
    ) {
        add(OperatorSource(SignalName.start, fact: "the daemon has started", standard.start)) {
            $0.refresh.on.contains(.start)
        }
        add(OperatorSource(SignalName.reload, fact: "waits for SIGHUP or freshetctl reload", standard.reload)) {
            $0.refresh.on.contains(.reload)
        }
        add(OperatorSource(SignalName.operation, fact: "waits for freshetctl refresh"))
        add(OperatorSource.requests())
        add(OperatorSource(SignalName.parameter, fact: "waits for freshetctl set")) { $0.hasParameters }
        add(
            TimerSource {
                overview.updateAtOnce()
                return overview.next(for: .timer)
            }
        ) { $0.refresh.isPlanned }
        add(SleepSource(parts.sleep, parts.engine, recorder, context, status)) { $0.refresh.on.contains(.resume) }
        add(SessionSource(parts.sessions, recorder)) { $0.refresh.on.contains(.foreground) }
        add(MeteredSource.references(parts.systemBus, parts.engine, recorder))
        add(PowerSource.references(parts.systemBus, parts.engine, recorder))
        add(networks.elsewhere)
        add(networks.references)
        add(BusSources(BusSignals(parts.systemBus), context, recorder).references)
        add(FileSource.references(parts.files, fileEvents))
        add(ZoneSource.references(parts.files, context.clock.zones, parts.engine))
        add(FleetSource.references(parts.fleet))
        add(CommitSource.references(commits) { [weak host] in host?.copyStatus(of: $0) ?? ("not known", nil) })
    }
}
