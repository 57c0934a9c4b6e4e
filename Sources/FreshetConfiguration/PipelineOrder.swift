/// A pipeline after which another one runs, because `refresh.after` or a source names it, with the location of the
/// name.
struct Predecessor: Hashable, Sendable {
    var name: String
    var location: Location
    /// The keys that lead to the name.
    var keyPath = "refresh.after"

    var key: String { keyPath.split(separator: ".").last.map(String.init) ?? keyPath }
}

/// The order in which pipelines run after each other. It checks that all named pipelines exist, and that no pipeline
/// runs after itself, directly or through others.
///
///     var order = PipelineOrder()
///     order.add("prices", after: [Predecessor(name: "catalogue", location: place)])
///     let errors = order.errors(among: configuration.files.names)
struct PipelineOrder {
    /// How many names of a cycle a message shows.
    static let maximumNamesShown = 8
    /// How many unknown names get a suggestion: each is compared with all existing names.
    static let maximumSuggestions = 100

    /// The predecessors of each pipeline that has any.
    private var predecessors: [String: [Predecessor]] = [:]

    mutating func add(_ name: String, after predecessors: [Predecessor]) {
        if !predecessors.isEmpty { self.predecessors[name] = predecessors }
    }

    /// The errors, each with the pipeline whose file has it. Without these pipelines the rest has no cycle.
    ///
    /// - Parameter pipelines: All existing pipelines, also invalid ones.
    func errors(among pipelines: some Collection<String>) -> [(pipeline: String, Diagnostic)] {
        guard !predecessors.isEmpty else { return [] }
        let pipelines = Set(pipelines)
        var near: [String: String?] = [:]
        var errors: [(pipeline: String, Diagnostic)] = []
        var successors: [String: [String]] = [:]
        for (name, predecessors) in predecessors.sorted(by: { $0.key < $1.key }) {
            for predecessor in predecessors {
                if predecessor.name == name {
                    errors.append((name, Self.selfReference(predecessor)))
                } else if !pipelines.contains(predecessor.name) {
                    if near[predecessor.name] == nil, near.count < Self.maximumSuggestions {
                        near[predecessor.name] = .some(Self.nearest(to: predecessor.name, among: pipelines))
                    }
                    let suggestion = near[predecessor.name] ?? nil
                    errors.append(
                        (name, Self.unknown(predecessor, suggestion: suggestion == name ? nil : suggestion)))
                } else {
                    successors[predecessor.name, default: []].append(name)
                }
            }
        }
        return errors + Self.cycles(successors).compactMap(error(of:))
    }

    private static func selfReference(_ predecessor: Predecessor) -> Diagnostic {
        Diagnostic(
            at: predecessor.location, keyPath: predecessor.keyPath,
            message: "'\(predecessor.key)' names this pipeline itself, \(predecessor.name.quoted)",
            remedy: "leave it out")
    }

    /// The name that is meant by a name that no pipeline has; nil: none is similar.
    static func nearest(to name: String, among pipelines: Set<String>) -> String? {
        let name = name.hasSuffix(".yaml") ? String(name.dropLast(".yaml".count)) : name
        return pipelines.contains(name) ? name : Suggestion.nearest(to: name, among: pipelines.sorted())
    }

    private static func unknown(_ predecessor: Predecessor, suggestion: String?) -> Diagnostic {
        Diagnostic(
            at: predecessor.location, keyPath: predecessor.keyPath,
            message: "there is no pipeline \(predecessor.name.quoted)",
            remedy: suggestion.map { "did you mean '\($0)'?" }
                ?? "'\(predecessor.key)' takes the \(predecessor.key == "after" ? "names of other pipelines" : "name of another pipeline")"
        )
    }

    // MARK: Cycles

    /// Each pipeline runs before the next one, and the last before the first. Each name occurs once.
    private typealias Cycle = [String]

    /// A cycle for each back edge of a depth-first search. Removing the pipelines to which these edges lead removes
    /// every cycle.
    ///
    /// The search is iterative, not recursive: its depth can be the number of pipelines.
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

    /// The error of a cycle. Its location is the name of the last pipeline in the first pipeline's file.
    private func error(of cycle: Cycle) -> (pipeline: String, Diagnostic)? {
        guard let first = cycle.first, let place = predecessors[first]?.first(where: { $0.name == cycle.last }) else {
            return nil
        }
        var names = cycle
        if names.count > Self.maximumNamesShown {
            let hidden = names.count - Self.maximumNamesShown
            let half = Self.maximumNamesShown / 2
            names.replaceSubrange(half..<(half + hidden), with: ["(\(hidden) more)"])
        }
        return (
            first,
            Diagnostic(
                at: place.location, keyPath: place.keyPath,
                message: "'\(place.key)' makes a cycle: " + (names + [first]).joined(separator: " → "),
                remedy: place.key == "after"
                    ? "each pipeline has the previous one in its 'after': remove one of these names"
                    : "each pipeline reads the previous one's copy or runs after it: remove one of these names")
        )
    }
}
