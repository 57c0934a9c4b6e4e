internal import FreshetSignals

/// The parts of a pipeline's snapshots: those of the run before, and those of the run under way.
///
/// A part is known by the keys that lead to its branch, and by what the configuration and the parameters make of it:
/// with others there is no value from before.
struct PartsDesk: Sendable {
    private let pipeline: String
    private let store: any SnapshotStore
    /// Of the pipeline's stage.
    private let root: String
    private let gathered: Gathered

    /// What the run has used so far.
    private final class Gathered: Sendable {
        struct State {
            var new: [String: StoredPart] = [:]
            var kept: Set<String> = []
        }
        let state = Lock(State())
    }

    init(of definition: PipelineDefinition, in store: any SnapshotStore) {
        pipeline = definition.name
        self.store = store
        var number = BindingNumber()
        number.add(definition.stage)
        root = number.text
        gathered = Gathered()
    }

    /// What was delivered last; nil: nothing, or something else.
    func part(at path: [String]) async -> StoredPart? {
        await store.part(pipeline, name(of: path))
    }

    /// The run uses a new part.
    func put(_ part: StoredPart, at path: [String]) {
        gathered.state.withLock { $0.new[name(of: path)] = part }
    }

    /// The run uses the part from before.
    func keep(at path: [String]) {
        gathered.state.withLock { _ = $0.kept.insert(name(of: path)) }
    }

    /// What the run used is what the next one finds.
    func close() async {
        let state = gathered.state.withLock { $0 }
        await store.keepParts(pipeline, state.new, and: state.kept)
    }

    /// Each key with its length, so that no two paths have one name.
    private func name(of path: [String]) -> String {
        root + path.map { "/\($0.utf8.count):\($0)" }.joined()
    }
}
