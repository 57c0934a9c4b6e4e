import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging
import Synchronization

/// A watched path of a pipeline. Pipelines with the same path share the watch.
struct SharedFileWatch: Sendable {
    let watch: FileWatch
    let following: SignalRegistry.Following
}

/// The files that pipelines watch.
extension Supervisor {
    /// The signals of a pipeline's `files`. They are followed until the pipeline is dismissed or has other files.
    func filesSignals(of definition: PipelineDefinition) -> [Signal] {
        guard let files = parts?.files, !definition.refresh.files.isEmpty else {
            fileWatches[definition.name] = nil
            return []
        }
        let watches = definition.refresh.files.map { files.watch($0) }
        fileWatches[definition.name] = watches.map { watch in
            SharedFileWatch(
                watch: watch,
                following: registry.follow(watch.signal, row: FileMonitor.signalName(of: watch.path), logsAtInfo: true))
        }
        for watch in watches { fileEvents.publish(watch.path, watch.fact) }
        return watches.map(\.signal)
    }

    /// The rows of `freshetctl signals`, one for each path.
    func fileStatuses() -> [SignalStatus] {
        var known: Set<String> = []
        return fileWatches.values.joined().map(\.watch).filter { known.insert($0.path).inserted }.map { watch in
            let fact = watch.fact
            return registry.status(
                FileMonitor.signalName(of: watch.path), fact: fact.text(at: .now), unavailable: fact.obstacle,
                ignored: watch.minorChanges)
        }
    }
}

/// Publishes the facts of watched files, and logs files that cannot be watched.
///
/// Safe to call from any thread.
final class FileEventPublisher: Sendable {
    private let log: FlapLog
    private let registry: SignalRegistry
    /// The last logged obstacles, by path.
    private let logged = Mutex<[String: String]>([:])

    init(log: FlapLog, registry: SignalRegistry) {
        self.log = log
        self.registry = registry
    }

    func publish(_ path: String, _ fact: FileFact) {
        registry.fact(FileMonitor.signalName(of: path), fact.description)
        let isNew = logged.withLock { logged in
            defer { logged[path] = fact.obstacle }
            return logged[path] != fact.obstacle
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
