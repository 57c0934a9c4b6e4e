/// A pipeline that another one's `refresh.after` names, and where.
struct Predecessor: Hashable, Sendable {
    var name: String
    var location: Location
}

/// Which pipelines run after which: whether all that are named exist, and that none runs after itself, by whatever way.
///
///     var order = PipelineOrder()
///     order.add("catalogue", after: [])
///     order.add("prices", after: [Predecessor(name: "catalogue", location: place)])
///     let faults = order.faults()
struct PipelineOrder {
    /// The most names of a cycle that a message shows.
    static let mostNamesShown = 8
    private static let keyPath = "refresh.after"

    private var predecessors: [String: [Predecessor]] = [:]

    /// A pipeline that exists; one whose file has faults does, too.
    mutating func add(_ name: String, after predecessors: [Predecessor]) {
        self.predecessors[name] = predecessors
    }

    /// What is wrong, each with the pipeline whose file says so. Without those pipelines the rest has no cycle.
    func faults() -> [(pipeline: String, Diagnostic)] {
        var faults: [(pipeline: String, Diagnostic)] = []
        var successors: [String: [String]] = [:]
        for (name, predecessors) in predecessors.sorted(by: { $0.key < $1.key }) {
            for predecessor in predecessors {
                if predecessor.name == name {
                    faults.append((name, Self.ownName(predecessor)))
                } else if self.predecessors[predecessor.name] == nil {
                    faults.append((name, unknown(predecessor, in: name)))
                } else {
                    successors[predecessor.name, default: []].append(name)
                }
            }
        }
        return faults + Self.cycles(successors).compactMap(fault(of:))
    }

    private static func ownName(_ predecessor: Predecessor) -> Diagnostic {
        Diagnostic(
            at: predecessor.location, keyPath: keyPath, message: "\(predecessor.name.quoted) is this pipeline itself",
            remedy: "leave it out")
    }

    private func unknown(_ predecessor: Predecessor, in name: String) -> Diagnostic {
        let others = predecessors.keys.filter { $0 != name }.sorted()
        let file = predecessor.name.hasSuffix(".yaml") ? String(predecessor.name.dropLast(5)) : predecessor.name
        let near = Suggestion.nearest(to: file, among: others)
        return Diagnostic(
            at: predecessor.location, keyPath: Self.keyPath,
            message: "there is no pipeline \(predecessor.name.quoted)",
            remedy: near.map { "did you mean '\($0)'?" } ?? "'after' takes the names of other pipelines")
    }

    // MARK: Cycles

    /// One pipeline runs after the other, and the first after the last; no name twice.
    private typealias Cycle = [String]

    /// A cycle for each arrow that leads back to where a walk along the arrows has come from. Who takes the ends of
    /// these arrows away has taken away every cycle.
    ///
    /// A walk is a list and no recursion: it may be as long as there are pipelines.
    private static func cycles(_ successors: [String: [String]]) -> [Cycle] {
        var cycles: [Cycle] = []
        var done: Set<String> = []
        for start in successors.keys.sorted() where !done.contains(start) {
            var path = [start]
            var places = [start: 0]
            var rest = [(successors[start] ?? [])[...]]
            while let here = path.last {
                guard let next = rest[rest.count - 1].popFirst() else {
                    path.removeLast()
                    rest.removeLast()
                    places[here] = nil
                    done.insert(here)
                    continue
                }
                if let place = places[next] {
                    cycles.append(Array(path[place...]))
                } else if !done.contains(next) {
                    places[next] = path.count
                    path.append(next)
                    rest.append((successors[next] ?? [])[...])
                }
            }
        }
        return cycles
    }

    /// The fault is where the cycle closes: at the first pipeline's word that it runs after the last.
    private func fault(of cycle: Cycle) -> (pipeline: String, Diagnostic)? {
        guard let first = cycle.first, let place = predecessors[first]?.first(where: { $0.name == cycle.last }) else {
            return nil
        }
        var names = cycle
        if names.count > Self.mostNamesShown {
            let hidden = names.count - Self.mostNamesShown
            let half = Self.mostNamesShown / 2
            names.replaceSubrange(half..<(half + hidden), with: ["(\(hidden) more)"])
        }
        return (
            first,
            Diagnostic(
                at: place.location, keyPath: Self.keyPath,
                message: "'after' leads in a circle: " + (names + [first]).joined(separator: " → "),
                remedy: "each has the one before it in its 'after': take one out")
        )
    }
}
