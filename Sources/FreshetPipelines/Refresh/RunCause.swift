/// One signal as the cause of a run: its name, how often it was received, and when first and last.
package struct RunCause: Hashable, Sendable {
    package var signal: String
    package var count: Int
    package var first: ContinuousClock.Instant
    package var last: ContinuousClock.Instant
    /// The detail of its last occurrence, for people, such as `default route via enp3s0`.
    package var detail: String?
    /// The number of its last occurrence, which identifies it in the journal and for subscribers; nil for a signal
    /// without numbers, such as a timer.
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
    /// Adds a cause. A signal that is there already keeps its position, and its count grows.
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

    /// Parses a ``summary``: it has the signals and how often each fired, but not when.
    ///
    /// - Parameter instant: the start of the run, used as the time of all causes.
    init(summary: String, at instant: ContinuousClock.Instant) {
        self = summary.split(separator: ", ").map { part in
            // `file /etc/hosts (3)`: the count is at the end, since a path may contain such text.
            guard part.hasSuffix(")"), let bracket = part.lastIndex(of: "("), part[..<bracket].hasSuffix(" "),
                let count = Int(part[bracket...].dropFirst().dropLast()), count > 1
            else { return RunCause(String(part), first: instant) }
            return RunCause(String(part[..<bracket].dropLast()), count: count, first: instant)
        }
    }

    /// The causes as one line, for people and for the stored history: `network (2), timer`.
    package var summary: String {
        map { $0.count == 1 ? $0.signal : "\($0.signal) (\($0.count))" }.joined(separator: ", ")
    }
}

/// A request for a run that has not started yet.
struct PendingRequest: Hashable, Sendable {
    /// The limits that a run ignores because a person requested it.
    enum RunOverrides: Int, Comparable, Sendable {
        case none
        /// Ignores the quiet period, `min-interval`, `fresh-for`, the backoff and the splay.
        case operation
        /// Ignores `Retry-After`, the budget and an unreachable network too.
        case forced

        static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
    }

    var causes: [RunCause] = []
    var urgency = RunOverrides.none
    /// The requests to the source are unconditional. This stays until a run has an answer.
    var isUnconditional = false
    /// The network came back for a waiting request: like an environment signal, this ends a backoff.
    var isRelease = false

    var isEmpty: Bool { causes.isEmpty && urgency == .none && !isRelease }
    var hasRequest: Bool { causes.contains { $0.kind == .request } }
    var hasEnvironment: Bool { isRelease || causes.contains { $0.kind == .environment } }

    mutating func merge(_ other: PendingRequest) {
        for cause in other.causes { causes.add(cause) }
        urgency = max(urgency, other.urgency)
        isUnconditional = isUnconditional || other.isUnconditional
        isRelease = isRelease || other.isRelease
    }

    /// The request after a run that did not succeed, without the operator's overrides.
    var again: PendingRequest { PendingRequest(causes: causes, isUnconditional: isUnconditional) }

    /// Removes what a success at that instant has answered: the environment signals until then.
    mutating func dropEnvironment(until success: ContinuousClock.Instant) {
        causes.removeAll { $0.kind == .environment && $0.last <= success }
        isRelease = false
    }

    /// Empties this and returns what was in it.
    mutating func take() -> PendingRequest {
        defer { self = PendingRequest() }
        return self
    }
}
