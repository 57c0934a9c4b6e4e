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
    fileprivate final class Gathered: Sendable {
        struct State {
            var new: [String: StoredPart] = [:]
            var kept: Set<String> = []
            var pages: [PagesState] = []
        }
        let state = Lock(State())
    }

    init(of definition: PipelineDefinition, with parameters: ParameterValues, in store: any SnapshotStore) {
        pipeline = definition.name
        self.store = store
        root = Self.root(of: definition, with: parameters)
        gathered = Gathered()
    }

    private static func root(of definition: PipelineDefinition, with parameters: ParameterValues) -> String {
        var number = BindingNumber()
        number.add(definition.stage, with: parameters)
        return number.text
    }

    /// What is known of a pipeline's sets of pages that may be continued, by what the store remembers of them.
    static func pages(
        _ remembered: [StoredPagesState], of definition: PipelineDefinition, with parameters: ParameterValues
    ) -> [PagesState] {
        guard !remembered.isEmpty else { return [] }
        let root = root(of: definition, with: parameters)
        return remembered.compactMap { state in
            path(of: state.part, below: root).map {
                PagesState(path: $0, count: state.count, hasMore: state.hasMore)
            }
        }.sorted()
    }

    /// The sets of pages that may be continued, as the run leaves them.
    var pages: [PagesState] { gathered.state.withLock { $0.pages }.sorted() }

    /// What was delivered last; nil: nothing, or something else.
    func part(at path: [String]) async -> StoredPart? {
        await store.part(pipeline, name(of: path))
    }

    /// The run uses a new part.
    func put(_ part: StoredPart, at path: [String]) {
        gathered.state.withLock { state in
            state.new[name(of: path)] = part
            state.note(part, at: path)
        }
    }

    /// The run uses the part from before.
    func keep(_ part: StoredPart, at path: [String]) {
        gathered.state.withLock { state in
            state.kept.insert(name(of: path))
            state.note(part, at: path)
        }
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

    private static func path(of name: String, below root: String) -> [String]? {
        guard name.utf8.starts(with: root.utf8) else { return nil }
        var path: [String] = []
        var rest = name.utf8.dropFirst(root.utf8.count)
        while !rest.isEmpty {
            guard rest.popFirst() == UInt8(ascii: "/"), let colon = rest.firstIndex(of: UInt8(ascii: ":")),
                let count = Int(String(decoding: rest[..<colon], as: UTF8.self)), count >= 0
            else { return nil }
            rest = rest[colon...].dropFirst()
            guard rest.count >= count else { return nil }
            path.append(String(decoding: rest.prefix(count), as: UTF8.self))
            rest = rest.dropFirst(count)
        }
        return path
    }
}

extension PartsDesk.Gathered.State {
    fileprivate mutating func note(_ part: StoredPart, at path: [String]) {
        guard let pages = part.pages else { return }
        self.pages.append(PagesState(path: path, count: pages.count, hasMore: pages.next != nil))
    }
}
