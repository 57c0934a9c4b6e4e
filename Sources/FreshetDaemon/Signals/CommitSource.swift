import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSignals

/// Pipelines that run after other pipelines.
extension Supervisor {
    /// The signals of a pipeline's `after`. They are counted until the pipeline is dismissed.
    func commitSignals(of definition: PipelineDefinition) -> [Signal] {
        guard !definition.refresh.after.isEmpty else { return [] }
        let signals = definition.refresh.after.map { (name: $0, signal: commitSignals.signal(of: $0)) }
        followedCommits[definition.name] = signals.map {
            registry.follow($0.signal, row: CommitSignals.row(of: $0.name))
        }
        return signals.map(\.signal)
    }

    /// Groups pipelines by their dependencies, so that each pipeline is in a later group than those it runs after.
    ///
    /// - Parameter after: the names that each pipeline runs after, without a cycle. A name that is not a key does not
    ///   run.
    nonisolated static func dependencyGroups(_ after: [String: [String]]) -> [[String]] {
        var awaited = after.mapValues { $0.count { after[$0] != nil } }
        var successors: [String: [String]] = [:]
        for (name, before) in after {
            for other in before { successors[other, default: []].append(name) }
        }
        var groups: [[String]] = []
        var group = awaited.filter { $0.value == 0 }.map(\.key)
        while !group.isEmpty {
            groups.append(group.sorted())
            group = group.flatMap { successors[$0] ?? [] }.filter { name in
                awaited[name, default: 0] -= 1
                return awaited[name] == 0
            }
        }
        return groups
    }

    /// The rows of `freshetctl signals`, one for each pipeline that another one runs after.
    func commitStatuses() async -> [SignalStatus] {
        var rows: [SignalStatus] = []
        for name in Set(pipelines.values.flatMap(\.definition.refresh.after)) {
            let status = await pipeline(name)
            let fact = status?.generation.map { "generation \($0.number), \($0.size) bytes, since \($0.age.rounded)" }
            rows.append(
                registry.status(
                    CommitSignals.row(of: name),
                    fact: fact ?? (status?.withdrawn == nil ? "no copy yet" : "its copy is withdrawn"),
                    unavailable: invalid[name].map { "it does not run: \($0.message)" }))
        }
        return rows
    }
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

    func fire(_ pipeline: String, _ detail: String) { trigger.activate(for: pipeline, detail) }
}

extension GenerationStatus {
    /// How long ago it was committed, by the wall clock.
    fileprivate var age: Duration { .microseconds(max(0, WallClock.now - committedAt)) }
}
