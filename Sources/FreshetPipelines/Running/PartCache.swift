import FreshetModel
internal import FreshetSignals

/// The parts of a pipeline's snapshots: those of the previous run, and those of the run in progress.
///
/// A part is identified by the keys on the path to its branch, and by the configuration and the parameters: with others
/// there is no earlier value.
struct PartCache: Sendable {
    private let pipeline: String
    private let store: any SnapshotStore
    /// The prefix of all names: a hash of the pipeline's stage and its parameters.
    private let root: String
    private let gathered: Gathered

    /// A part that the current run uses.
    struct Use: Hashable, Sendable {
        var part: StoredPart
        /// The store does not have it yet.
        var isNew: Bool

        init(_ part: StoredPart, isNew: Bool) {
            self.part = part
            self.isNew = isNew
        }
    }

    /// The parts that the run has used so far, by path.
    private final class Gathered: Sendable {
        struct Used {
            /// Nil: the store has it.
            var new: StoredPart?
            var pages: PagesState?
        }
        let used = Lock<[[String]: Used]>([:])
    }

    init(of definition: PipelineDefinition, with parameters: ParameterValues, in store: any SnapshotStore) {
        pipeline = definition.name
        self.store = store
        root = Self.root(of: definition, with: parameters)
        gathered = Gathered()
    }

    private static func root(of definition: PipelineDefinition, with parameters: ParameterValues) -> String {
        var number = BindingHash()
        number.add(definition.stage, with: parameters)
        return number.text
    }

    /// The pipeline's sets of pages that may be continued, from the stored state.
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

    /// The sets of pages that may be continued after the run.
    var pages: [PagesState] { gathered.used.withLock { $0.values.compactMap(\.pages) }.sorted() }

    /// The last value of the part; nil: there is none with this configuration.
    func part(at path: [String]) async -> StoredPart? {
        await store.parts(pipeline, [name(of: path)]).first ?? nil
    }

    /// The last values of the parts of a fan-out's branches.
    ///
    /// - Parameter path: the path of the fan-out.
    func branches(_ keys: [String], below path: [String]) -> BranchParts {
        let prefix = name(of: path)
        return BranchParts(count: keys.count) { [store, pipeline] branches in
            await store.parts(pipeline, keys[branches].map { prefix + Self.nameComponent($0) })
        }
    }

    /// Records that the run uses this part. It replaces another one at the same path.
    func use(_ use: Use, at path: [String]) {
        let pages = use.part.pages.map { PagesState(path: path, count: $0.count, hasMore: $0.next != nil) }
        gathered.used.withLock { $0[path] = Gathered.Used(new: use.isNew ? use.part : nil, pages: pages) }
    }

    /// Removes the used parts below a path, which is evaluated again and may have other branches then.
    func restart(below path: [String]) {
        gathered.used.withLock { $0 = $0.filter { !$0.key.starts(with: path) } }
    }

    /// Stores the parts that the run has used so far, and keeps the last values of branches that have not ended yet.
    ///
    /// - Parameter awaited: the keys of the pipeline's own branches that have not ended.
    func keep(awaiting awaited: Set<String> = []) async {
        let (new, names) = gathered.used.withLock { used in
            var new: [String: StoredPart] = [:]
            for (path, use) in used where path.first.map(awaited.contains) != true {
                guard let part = use.new else { continue }
                new[name(of: path)] = part
                used[path]?.new = nil
            }
            return (new, Set(used.keys.map(name)))
        }
        await store.keepParts(pipeline, new) { [root] name in
            names.contains(name) || Self.path(of: name, below: root)?.first.map(awaited.contains) == true
        }
    }

    /// The name of a part: each key with its length, so that different paths have different names.
    private func name(of path: [String]) -> String {
        path.reduce(into: root) { $0 += Self.nameComponent($1) }
    }

    private static func nameComponent(_ key: String) -> String { "/\(key.utf8.count):\(key)" }

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
