import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals

/// The local time zone, for calendar times (`refresh.at`): a change of it plans them again.
@DaemonActor
final class ZoneSource: FollowingSource {
    private static let row = "time-zone"

    nonisolated let name = "time-zone"
    private let watch: FileWatch
    private let zones: ZoneFiles
    private let engine: PipelineEngine

    init(_ watch: FileWatch, _ zones: ZoneFiles, _ engine: PipelineEngine) {
        self.watch = watch
        self.zones = zones
        self.engine = engine
    }

    /// The time zone, for pipelines with calendar times.
    static func references(
        _ monitor: FileMonitor, _ zones: ZoneFiles, _ engine: PipelineEngine
    ) -> SignalRegistry.Selection {
        { needs in
            guard !needs.refresh.calendar.isEmpty else { return [] }
            return [
                SourceReference(name: row, isSubscribed: false) {
                    ZoneSource(monitor.watch(ZoneFiles.localFile), zones, engine)
                }
            ]
        }
    }

    var signal: Signal? { nil }
    var fact: String { zones.rules(named: nil).name }
    var unavailable: String? { watch.fact.obstacle }
    var canBeFired: Bool { false }
    func fire(_ detail: String) {}

    /// Plans calendar times again when the file of the time zone changes.
    nonisolated func follow() async {
        for await _ in watch.signal.causes {
            zones.forget()
            engine.zoneChanged()
        }
    }
}
