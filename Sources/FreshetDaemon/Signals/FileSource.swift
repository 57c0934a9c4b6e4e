import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging
import Synchronization

/// A path that pipelines watch (`files`).
@DaemonActor
final class FileSource: EventSource {
    nonisolated let name: String
    private let watch: FileWatch
    private let events: FileEventPublisher

    init(_ watch: FileWatch, _ events: FileEventPublisher) {
        name = FileMonitor.signalName(of: watch.path)
        self.watch = watch
        self.events = events
    }

    /// The paths that a pipeline watches.
    static func references(_ monitor: FileMonitor, _ events: FileEventPublisher) -> SignalRegistry.Selection {
        { needs in
            needs.refresh.files.map { path in
                SourceReference(name: FileMonitor.signalName(of: path)) { FileSource(monitor.watch(path), events) }
            }
        }
    }

    var signal: Signal? { watch.signal }
    var fact: String { watch.fact.text(at: .now) }
    var unavailable: String? { watch.fact.obstacle }
    var ignored: UInt64? { watch.minorChanges }
    var logsAtInfo: Bool { true }
    func fire(_ detail: String) { watch.fire(detail) }

    /// Publishes the first fact; ``FileMonitor`` reports the later ones.
    func useBegan() { events.publish(watch.path, watch.fact) }
}

/// Publishes the facts of watched files, and logs files that cannot be watched.
///
/// Safe to call from any thread.
final class FileEventPublisher: Sendable {
    private let log: FlapLog
    private let recorder: SignalRecorder
    /// The last logged obstacles, by path.
    private let logged = Mutex<[ExactText: String]>([:])

    init(log: FlapLog, recorder: SignalRecorder) {
        self.log = log
        self.recorder = recorder
    }

    func publish(_ path: String, _ fact: FileFact) {
        recorder.fact(FileMonitor.signalName(of: path), fact.description)
        let isNew = logged.withLock { logged in
            let key = ExactText(path)
            defer { logged[key] = fact.obstacle }
            return logged[key] != fact.obstacle
        }
        guard isNew, let obstacle = fact.obstacle else { return }
        log.log(.fileUnwatched, about: path, [.file: .string(path), .error: .string(obstacle)])
    }
}

extension FileFact {
    /// The fact for people, such as `exists since 5min`.
    func text(at now: ContinuousClock.Instant) -> String {
        since.map { "\(self) since \((now - $0).rounded)" } ?? description
    }
}
