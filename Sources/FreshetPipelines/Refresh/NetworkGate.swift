import FreshetModel

/// Decides whether the network allows a run, and whether a failure to connect counts.
struct NetworkGate: Hashable, Sendable {
    /// The grace period after `network` or `resume`: the resolver, the address configuration and a wireless link need
    /// some seconds more than the kernel, so a failure to connect does not count.
    static let grace: Duration = .seconds(30)
    /// The first wait after such a failure; each further wait is twice as long.
    static let firstGraceDelay: Duration = .milliseconds(250)
    /// How often an overdue check is attempted although there is no route to the target.
    static let attemptAnyway: Duration = .seconds(15 * 60)

    enum Change: Hashable, Sendable {
        case none, lost, regained
        /// Reachable before and now, but by another path.
        case path
    }

    private(set) var state: NetworkState
    private var graceUntil: BootInstant?
    /// Nil if all of it is absent.
    @Rarely private var rare = Rare()

    /// What a pipeline does not have whose network is reachable: it keeps one word for all of it.
    private struct Rare: RareValues {
        /// Nil: there have been no directly connected networks that matter.
        var direct: DirectNetworks?
        var unreachableSince: BootInstant?
        var lastAttemptAnyway: BootInstant?
        var graceFailures = 0
    }

    private var direct: DirectNetworks? {
        get { rare.direct }
        set { rare.direct = newValue }
    }
    private var unreachableSince: BootInstant? {
        get { rare.unreachableSince }
        set { rare.unreachableSince = newValue }
    }
    private var lastAttemptAnyway: BootInstant? {
        get { rare.lastAttemptAnyway }
        set { rare.lastAttemptAnyway = newValue }
    }
    private var graceFailures: Int {
        get { rare.graceFailures }
        set { rare.graceFailures = newValue }
    }

    init(_ state: NetworkState, now: BootInstant) {
        self.state = state
        if state.reachable {
            settle(from: state.changedAt)
        } else {
            unreachableSince = now
        }
    }

    mutating func update(_ new: NetworkState, now: BootInstant) -> Change {
        let old = state
        state = new
        switch (old.reachable, new.reachable) {
        case (true, false):
            unreachableSince = now
            return .lost
        case (false, true):
            unreachableSince = nil
            settle(from: new.changedAt)
            return .regained
        case (true, true):
            if new.epoch != old.epoch { settle(from: new.changedAt) }
            return new.path == old.path ? .none : .path
        case (false, false):
            return .none
        }
    }

    /// Whether runs may start: there is a route to the target, or the origin was found on a directly connected network.
    var isUsable: Bool { state.reachable || direct?.isOriginFound == true }

    /// The directly connected networks have changed; nil: there are none.
    mutating func directNetworks(_ revision: UInt64?) {
        guard revision != nil || direct != nil else { return }
        var networks = direct ?? DirectNetworks()
        networks.revision = revision
        direct = networks
    }

    /// The revision of the networks on which a run that starts now tries the origin; nil: there is a route to the
    /// target.
    mutating func directRun(at now: BootInstant) -> UInt64? {
        state.reachable ? nil : direct?.runStarts(at: now)
    }

    /// The path that a run that starts now uses; nil: the network is not reachable.
    var usedPath: String? { state.reachable ? state.path : nil }

    /// Records whether a run without a route to the target has found the origin on directly connected networks.
    mutating func runEnded(_ revision: UInt64, _ result: RunResult) {
        switch result {
        case .succeeded: direct?.runEnded(revision, isFound: true)
        case .failed(let failure):
            // A failure before the request, or at another host, says nothing about the origin.
            let isAnswer = [.transient, .certificateDate, .refused, .content].contains(failure.kind)
            direct?.runEnded(revision, isFound: isAnswer || failure.isRouted)
        case .cancelled: break
        }
    }

    /// When a run tries an origin on directly connected networks; nil: not before these networks change.
    var looksForOrigin: BootInstant? {
        state.reachable ? nil : direct?.nextAttempt(since: unreachableSince ?? state.changedAt)
    }

    /// `network` or `resume` fired: the grace period begins, with short waits again.
    mutating func settle(from instant: BootInstant) {
        let until = instant.advanced(by: Self.grace)
        guard graceUntil.map({ until > $0 }) ?? true else { return }
        graceUntil = until
        graceFailures = 0
    }

    func isGrace(at now: BootInstant) -> Bool {
        graceUntil.map { now < $0 } ?? false
    }

    /// The wait after a failure to connect within the grace period: 0.25 s, 0.5 s, 1 s, 2 s, …
    mutating func graceDelay() -> Duration {
        defer { graceFailures += 1 }
        // safe: within 30 s there are at most seven such failures; the limit only keeps the shift in bounds.
        return Self.firstGraceDelay * (1 << min(graceFailures, 16))
    }

    /// When a check that is due since the given instant is attempted although there is no route to the target.
    func attemptsAnyway(overdueSince due: BootInstant) -> BootInstant {
        var attempt = due
        if let unreachableSince { attempt = max(attempt, unreachableSince.advanced(by: Self.attemptAnyway)) }
        if let lastAttemptAnyway { attempt = max(attempt, lastAttemptAnyway.advanced(by: Self.attemptAnyway)) }
        return attempt
    }

    mutating func attemptedAnyway(at now: BootInstant) {
        lastAttemptAnyway = now
    }
}
