/// One signal's share in a run: its name, how often it was heard, and when first and last.
package struct RunCause: Hashable, Sendable {
    package var signal: String
    package var count: Int
    package var first: ContinuousClock.Instant
    package var last: ContinuousClock.Instant
    /// What its last occurrence said for people, such as `default route via enp3s0`.
    package var detail: String?
    /// The number of its last occurrence, by which the journal and who follows signals know it; nil for what has none,
    /// such as a timer.
    package var number: UInt64?

    package init(
        _ signal: String, count: Int = 1, first: ContinuousClock.Instant, last: ContinuousClock.Instant? = nil,
        detail: String? = nil, number: UInt64? = nil
    ) {
        self.signal = signal
        self.count = count
        self.first = first
        self.last = last ?? first
        self.detail = detail
        self.number = number
    }

    package var kind: SignalKind { SignalKind(signal: signal) }
}

extension [RunCause] {
    /// Adds a cause; a name that is there already keeps its place and counts on.
    mutating func add(_ cause: RunCause) {
        guard let index = firstIndex(where: { $0.signal == cause.signal }) else {
            append(cause)
            return
        }
        self[index].count += cause.count
        self[index].first = Swift.min(self[index].first, cause.first)
        if cause.last >= self[index].last {
            self[index].last = cause.last
            self[index].detail = cause.detail ?? self[index].detail
            self[index].number = cause.number
        }
    }

    /// What ``summary`` has kept of causes: their signals, and how often each fired. When that was it does not say.
    ///
    /// - Parameter instant: when the run began that they led to.
    init(summary: String, at instant: ContinuousClock.Instant) {
        self = summary.split(separator: ", ").map { part in
            // `file /etc/hosts (3)`: at the end, since a path may have as much in it.
            guard part.hasSuffix(")"), let bracket = part.lastIndex(of: "("), part[..<bracket].hasSuffix(" "),
                let count = Int(part[bracket...].dropFirst().dropLast()), count > 1
            else { return RunCause(String(part), first: instant) }
            return RunCause(String(part[..<bracket].dropLast()), count: count, first: instant)
        }
    }

    /// The causes as one line for people and for the memory of runs: `network (2), timer`.
    package var summary: String {
        map { $0.count == 1 ? $0.signal : "\($0.signal) (\($0.count))" }.joined(separator: ", ")
    }
}

/// What asks for a run and was not given one yet.
struct Wanted: Hashable, Sendable {
    /// What a run may pass because a person asked for it.
    enum RunOverrides: Int, Comparable, Sendable {
        case none
        /// Passes quiet, `min-interval`, `fresh-for`, back-off and splay.
        case operation
        /// Passes `Retry-After` and an unreachable network as well.
        case forced

        static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
    }

    var causes: [RunCause] = []
    var urgency = RunOverrides.none
    /// The source is asked without conditions. It stays until a run has an answer.
    var isUnconditional = false
    /// The network came back for something that waited for it: acts on a back-off as an environment signal does.
    var isRelease = false

    var isEmpty: Bool { causes.isEmpty && urgency == .none && !isRelease }
    var hasDemand: Bool { causes.contains { $0.kind == .demand } }
    var hasEnvironment: Bool { isRelease || causes.contains { $0.kind == .environment } }

    mutating func merge(_ other: Wanted) {
        for cause in other.causes { causes.add(cause) }
        urgency = max(urgency, other.urgency)
        isUnconditional = isUnconditional || other.isUnconditional
        isRelease = isRelease || other.isRelease
    }

    /// What a run that did not succeed was for, without what the operator let it pass.
    var again: Wanted { Wanted(causes: causes, isUnconditional: isUnconditional) }

    /// Takes out what a success at that instant has answered: the environment's signals until then.
    mutating func dropEnvironment(until success: ContinuousClock.Instant) {
        causes.removeAll { $0.kind == .environment && $0.last <= success }
        isRelease = false
    }

    /// Empties this and returns what was in it.
    mutating func take() -> Wanted {
        defer { self = Wanted() }
        return self
    }
}
