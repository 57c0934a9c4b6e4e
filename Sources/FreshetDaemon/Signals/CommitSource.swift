import FreshetModel
import FreshetPipelines
import FreshetSignals

/// The commits of a pipeline that others run after (`after`).
@DaemonActor
final class CommitSource: EventSource {
    /// What the row shows of the pipeline.
    typealias Lookup = @DaemonActor (_ pipeline: String) -> (fact: String, unavailable: String?)

    nonisolated let name: String
    private let pipeline: String
    private let commits: CommitSignals
    private let lookup: Lookup

    private init(_ pipeline: String, _ commits: CommitSignals, _ lookup: @escaping Lookup) {
        name = CommitSignals.row(of: pipeline)
        self.pipeline = pipeline
        self.commits = commits
        self.lookup = lookup
    }

    /// The pipelines that a pipeline runs after.
    static func references(_ commits: CommitSignals, _ lookup: @escaping Lookup) -> SignalRegistry.Selection {
        { needs in
            needs.refresh.after.map { pipeline in
                SourceReference(name: CommitSignals.row(of: pipeline)) { CommitSource(pipeline, commits, lookup) }
            }
        }
    }

    var signal: Signal? { commits.signal(of: pipeline) }
    var fact: String { lookup(pipeline).fact }
    var unavailable: String? { lookup(pipeline).unavailable }
    func fire(_ detail: String) { commits.fire(pipeline, detail) }
}

/// The signal of each pipeline that has committed a generation.
///
/// Safe to call from any thread.
final class CommitSignals: Sendable {
    private let trigger = Trigger(SignalName.pipeline)

    /// The name of the row in `freshetctl signals`.
    static func row(of pipeline: String) -> String { "\(SignalName.pipeline) \(pipeline)" }

    /// The signal that fires when a pipeline commits.
    func signal(of pipeline: String) -> Signal { trigger.signal(activatedBy: pipeline) }

    /// Fires the signal of a pipeline that has committed.
    func fire(_ pipeline: String, _ generation: CurrentGeneration) {
        fire(pipeline, "\(pipeline) committed generation \(generation.number)")
    }

    /// Fires the signal of a pipeline whose copy readers find again. Pipelines that run after it may have found no copy in
    /// between.
    func fireAgain(_ pipeline: String, _ generation: CurrentGeneration) {
        fire(pipeline, "\(pipeline) has its generation \(generation.number) again")
    }

    func fire(_ pipeline: String, _ detail: String) { trigger.activate(for: pipeline, detail) }
}
