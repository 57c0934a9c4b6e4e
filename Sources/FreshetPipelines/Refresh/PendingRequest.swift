import FreshetModel

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
    mutating func dropEnvironment(until success: BootInstant) {
        causes.removeAll { $0.kind == .environment && $0.last <= success }
        isRelease = false
    }

    /// Empties this and returns what was in it.
    mutating func take() -> PendingRequest {
        defer { self = PendingRequest() }
        return self
    }

    var hasParameters: Bool { causes.contains { $0.signal == SignalName.parameter } }

    mutating func dropParameters() {
        causes.removeAll { $0.signal == SignalName.parameter }
    }
}

/// The pending retry of a failed run.
struct Retry: Hashable, Sendable {
    /// The causes of the failed run.
    var pendingRequest: PendingRequest
    var kind: RunFailure.Kind
    var due: BootInstant
    /// The failure was within the grace period after `network` or `resume`, and does not count.
    var inGrace: Bool
    /// A signal ended the wait.
    var isCut = false
    /// The network came back during a burst: the attempt waits until the burst delivers.
    var isHeld = false
}
