import FreshetModel

/// The actions that a ``RefreshMachine`` has decided on, and what it reported last.
struct RefreshOutput: Sendable {
    private(set) var actions: [RefreshAction] = []
    private var wake: BootInstant?
    private var activity: PipelineActivity

    init(_ activity: PipelineActivity) { self.activity = activity }

    mutating func add(_ action: RefreshAction) {
        // For all actions of usual events, so that the array is not copied while it grows.
        if actions.isEmpty { actions.reserveCapacity(6) }
        actions.append(action)
    }

    mutating func report(_ event: EngineEvent) { add(.report(event)) }

    mutating func answer(_ requests: [UInt64], _ answer: RefreshAnswer) {
        for request in requests { add(.answer(request: request, answer)) }
    }

    /// Stores the used part of the budget, if it has changed.
    mutating func remember(_ spent: [RequestMeter.Spent]?) {
        if let spent { add(.rememberRequests(spent)) }
    }

    /// Sets the timer, if that is a change.
    mutating func wake(at instant: BootInstant?) {
        guard instant != wake else { return }
        wake = instant
        add(.wake(at: instant))
    }

    /// Whether a permit was requested just now. It may be granted immediately: only the next call knows whether the run
    /// waits for it.
    var requestsPermit: Bool { actions.contains { if case .requestPermit = $0 { true } else { false } } }

    /// Reports the visible state, if that is a change.
    mutating func stateChanged(_ new: PipelineActivity) {
        guard !new.isLike(activity) else { return }
        let (before, after) = (activity.wait, new.wait)
        activity = new
        if before?.reason != after?.reason {
            if let before { report(.waitingEnded(before.reason)) }
            if let after { report(.waitingBegan(after)) }
        }
        report(.stateChanged(new))
    }

    /// Takes all actions.
    mutating func take() -> [RefreshAction] {
        defer { actions.removeAll() }
        return actions
    }
}

extension PipelineActivity {
    /// Whether the two differ in at most an instant or the progress, so that no event is needed.
    func isLike(_ other: PipelineActivity) -> Bool {
        switch (self, other) {
        case (.waiting(let one), .waiting(let other)): one.reason == other.reason && one.detail == other.detail
        case (.loading, .loading): true
        default: self == other
        }
    }

    /// The wait, if the activity is waiting.
    package var wait: Wait? {
        if case .waiting(let wait) = self { wait } else { nil }
    }
}
