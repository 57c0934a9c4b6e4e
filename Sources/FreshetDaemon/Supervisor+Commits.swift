import FreshetControl
import FreshetPipelines
import FreshetSignals

/// The pipelines that run after others.
extension Supervisor {
    /// The signals of a pipeline's `after`, which are counted until it is dismissed.
    func commitSignals(of definition: PipelineDefinition) -> [Signal] {
        guard !definition.refresh.after.isEmpty else { return [] }
        let signals = definition.refresh.after.map { (name: $0, signal: commitNews.signal(of: $0)) }
        followedCommits[definition.name] = signals.map { book.follow($0.signal, row: CommitSignals.row(of: $0.name)) }
        return signals.map(\.signal)
    }

    /// In which turns pipelines run, so that each comes after those that it runs after.
    ///
    /// - Parameter after: what each runs after; without a circle. Who is no key does not run.
    static func turns(_ after: [String: [String]]) -> [[String]] {
        var awaited = after.mapValues { $0.count { after[$0] != nil } }
        var successors: [String: [String]] = [:]
        for (name, before) in after {
            for other in before { successors[other, default: []].append(name) }
        }
        var turns: [[String]] = []
        var turn = awaited.filter { $0.value == 0 }.map(\.key)
        while !turn.isEmpty {
            turns.append(turn.sorted())
            turn = turn.flatMap { successors[$0] ?? [] }.filter { name in
                awaited[name, default: 0] -= 1
                return awaited[name] == 0
            }
        }
        return turns
    }

    /// The rows of `freshetctl signals`, one for each pipeline that another one waits for.
    func commitStatuses() async -> [SignalStatus] {
        var rows: [SignalStatus] = []
        for name in Set(pipelines.values.flatMap(\.definition.refresh.after)) {
            let status = await pipeline(name)
            let fact = status?.generation.map { "generation \($0.number), \($0.size) bytes, since \($0.age.rounded)" }
            rows.append(
                book.status(
                    CommitSignals.row(of: name),
                    fact: fact ?? (status?.withdrawn == nil ? "no copy yet" : "its copy is withdrawn"),
                    unavailable: faulty[name].map { "it does not run: \($0.message)" }))
        }
        return rows
    }
}

/// The signal of each pipeline that has committed a generation.
///
/// Safe to call from any thread.
final class CommitSignals: Sendable {
    private let trigger = Trigger(SignalName.pipeline)

    /// The row of `freshetctl signals`.
    static func row(of pipeline: String) -> String { "\(SignalName.pipeline) \(pipeline)" }

    /// Fires when this pipeline commits.
    func signal(of pipeline: String) -> Signal { trigger.signal(activatedBy: pipeline) }

    /// A pipeline has committed.
    func tell(_ pipeline: String, _ generation: CurrentGeneration) {
        raise(pipeline, "\(pipeline) committed generation \(generation.number)")
    }

    func raise(_ pipeline: String, _ detail: String) { trigger.activate(for: pipeline, detail) }
}

/// Tells which runs leave a new generation: not by their outcome alone, since a run may have committed before it was
/// superseded or cancelled.
struct CommitDetector: Sendable {
    /// What was offered when the run under way started.
    private var before: UInt64?

    /// - Parameter generation: what is offered now.
    /// - Returns: the generation, if it is new.
    mutating func heard(_ event: EngineEvent, generation: CurrentGeneration?) -> CurrentGeneration? {
        switch event {
        case .runStarted:
            before = generation?.number
            return nil
        case .runEnded(let summary, _):
            // Unchanged, it is not new, even if it was not known of.
            guard let generation, generation.number != before, summary.outcome != .unchanged else { return nil }
            return generation
        case .heard, .suppressed, .waitingBegan, .waitingEnded, .signed, .retryPlanned, .stateChanged,
            .parametersDropped, .expired, .expiredNoMore, .contentExpired, .contentExpiredNoMore,
            .withdrawn, .withdrawnDamaged, .returned:
            return nil
        }
    }
}

extension GenerationStatus {
    /// How long ago it was committed, by the wall clock.
    fileprivate var age: Duration { .microseconds(max(0, WallClock.now - committedAt)) }
}
