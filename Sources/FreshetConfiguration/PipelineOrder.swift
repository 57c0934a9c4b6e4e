/// A pipeline that another one runs after, because `refresh.after` or a source names it, and where.
struct Predecessor: Hashable, Sendable {
    var name: String
    var location: Location
    /// The keys at which it stands.
    var keyPath = "refresh.after"

    var key: String { keyPath.split(separator: ".").last.map(String.init) ?? keyPath }
}

/// Which pipelines run after which: whether all that are named exist, and that none runs after itself, by whatever way.
///
///     var order = PipelineOrder()
///     order.add("prices", after: [Predecessor(name: "catalogue", location: place)])
///     let faults = order.faults(among: configuration.files.keys)
struct PipelineOrder {
    /// The most names of a cycle that a message shows.
    static let mostNamesShown = 8
    /// The most names for which one is looked for that was meant: each is compared with all that there are.
    static let mostSuggestions = 100

    /// Of those alone that have any: most have none, and cost nothing.
    private var predecessors: [String: [Predecessor]] = [:]

    mutating func add(_ name: String, after predecessors: [Predecessor]) {
        if !predecessors.isEmpty { self.predecessors[name] = predecessors }
    }

    /// What is wrong, each with the pipeline whose file says so. Without those pipelines the rest has no cycle.
    ///
    /// - Parameter pipelines: All that exist; one whose file has faults does, too.
    func faults(among pipelines: some Collection<String>) -> [(pipeline: String, Diagnostic)] {
        guard !predecessors.isEmpty else { return [] }
        let pipelines = Set(pipelines)
        var near: [String: String?] = [:]
        var faults: [(pipeline: String, Diagnostic)] = []
        var successors: [String: [String]] = [:]
        for (name, predecessors) in predecessors.sorted(by: { $0.key < $1.key }) {
            for predecessor in predecessors {
                if predecessor.name == name {
                    faults.append((name, Self.ownName(predecessor)))
                } else if !pipelines.contains(predecessor.name) {
                    if near[predecessor.name] == nil, near.count < Self.mostSuggestions {
                        near[predecessor.name] = .some(Self.nearest(to: predecessor.name, among: pipelines))
                    }
                    let meant = near[predecessor.name] ?? nil
                    faults.append((name, Self.unknown(predecessor, meant: meant == name ? nil : meant)))
                } else {
                    successors[predecessor.name, default: []].append(name)
                }
            }
        }
        return faults + Self.cycles(successors).compactMap(fault(of:))
    }

    private static func ownName(_ predecessor: Predecessor) -> Diagnostic {
        Diagnostic(
            at: predecessor.location, keyPath: predecessor.keyPath,
            message: "\(predecessor.name.quoted) is this pipeline itself",
            remedy: "leave it out")
    }

    private static func nearest(to name: String, among pipelines: Set<String>) -> String? {
        let name = name.hasSuffix(".yaml") ? String(name.dropLast(".yaml".count)) : name
        return pipelines.contains(name) ? name : Suggestion.nearest(to: name, among: pipelines.sorted())
    }

    private static func unknown(_ predecessor: Predecessor, meant: String?) -> Diagnostic {
        Diagnostic(
            at: predecessor.location, keyPath: predecessor.keyPath,
            message: "there is no pipeline \(predecessor.name.quoted)",
            remedy: meant.map { "did you mean '\($0)'?" }
                ?? "'\(predecessor.key)' takes the \(predecessor.key == "after" ? "names of other pipelines" : "name of another one")"
        )
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
                at: place.location, keyPath: place.keyPath,
                message: "'\(place.key)' leads in a circle: " + (names + [first]).joined(separator: " → "),
                remedy: place.key == "after"
                    ? "each has the one before it in its 'after': take one out"
                    : "each is made of the one before it, or runs after it: take one out")
        )
    }
}
