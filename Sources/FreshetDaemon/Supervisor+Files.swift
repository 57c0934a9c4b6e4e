import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging
import Synchronization

/// A path that a pipeline listens to; those of several pipelines share what they have of it.
struct SharedFileWatch: Sendable {
    let watch: FileWatch
    let following: SignalRegistry.Following
}

/// The files that pipelines listen to.
extension Supervisor {
    /// The signals of a pipeline's `files`, which are followed until it is dismissed or follows others.
    func filesSignals(of definition: PipelineDefinition) -> [Signal] {
        guard let files = parts?.files, !definition.refresh.files.isEmpty else {
            fileWatches[definition.name] = nil
            return []
        }
        let watches = definition.refresh.files.map { files.watch($0) }
        fileWatches[definition.name] = watches.map { watch in
            SharedFileWatch(
                watch: watch,
                following: book.follow(watch.signal, row: FileMonitor.signalName(of: watch.path), isNews: true))
        }
        for watch in watches { fileNews.tell(watch.path, watch.fact) }
        return watches.map(\.signal)
    }

    /// The rows of `freshetctl signals`, one for each path.
    func fileStatuses() -> [SignalStatus] {
        var known: Set<String> = []
        return fileWatches.values.joined().map(\.watch).filter { known.insert($0.path).inserted }.map { watch in
            let fact = watch.fact
            return book.status(
                FileMonitor.signalName(of: watch.path), fact: fact.text(at: .now), unavailable: fact.obstacle,
                ignored: watch.minorChanges)
        }
    }
}

/// What becomes of files: told to those who follow, and said in the journal if they cannot be watched.
///
/// Safe to call from any thread.
final class FileEventPublisher: Sendable {
    private let log: Logger
    private let book: SignalRegistry
    /// The obstacles that were said, by path.
    private let said = Mutex<[String: String]>([:])

    init(log: Logger, book: SignalRegistry) {
        self.log = log
        self.book = book
    }

    func tell(_ path: String, _ fact: FileFact) {
        book.fact(FileMonitor.signalName(of: path), fact.description)
        let isNew = said.withLock { said in
            defer { said[path] = fact.obstacle }
            return said[path] != fact.obstacle
        }
        guard isNew, let obstacle = fact.obstacle else { return }
        log.say(.fileUnwatched, [.file: .string(path), .error: .string(obstacle)])
    }
}

extension FileFact {
    /// For people, such as `exists since 5min`.
    func text(at now: ContinuousClock.Instant) -> String {
        since.map { "\(self) since \((now - $0).rounded)" } ?? description
    }
}
