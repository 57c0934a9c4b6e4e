import Testing

@testable import FreshetPipelines

/// A talk with a refresh machine: what is said to it at which second, and what it does.
///
/// Slots are granted at once unless `grantsSlots` is false. Times are seconds since the beginning, with fractions.
final class Dialogue {
    typealias Event = RefreshMachine.Event

    /// What the machine does, without slots and reports.
    enum Permission: Equatable {
        case starts(UInt64, [String])
        case cancels(UInt64)
        case answers(UInt64, RunOutcome)
        case refuses(UInt64, RefreshRefusal)
        case stops(UInt64)
        case remembersRetryAfter(Double?)
        case seeksProof(epoch: UInt64?)
        case withdraws
        case putsBack
    }

    /// Something done, and when.
    struct Moment: Equatable, CustomStringConvertible {
        var at: Double
        var deed: Permission
        var description: String { "\(at): \(deed)" }
    }

    private(set) var machine: RefreshMachine
    var grantsSlots = true
    private(set) var slotRequests: [UInt64] = []
    private(set) var slotReleases: [UInt64] = []
    private(set) var events: [EngineEvent] = []
    private(set) var wishes: [ProofRequest?] = []
    private(set) var orders: [RunOrder] = []
    private(set) var summaries: [RunSummary] = []
    private var wakeInstant: ContinuousClock.Instant?
    private var instant = Dialogue.beginning

    /// An arbitrary beginning of time.
    static let beginning = ContinuousClock.now

    static func instant(_ seconds: Double) -> ContinuousClock.Instant {
        beginning.advanced(by: .milliseconds(Int64((seconds * 1000).rounded())))
    }

    static func seconds(_ instant: ContinuousClock.Instant) -> Double {
        let span = beginning.duration(to: instant)
        let (seconds, attoseconds) = span.components
        return ((Double(seconds) + Double(attoseconds) / 1e18) * 1000).rounded() / 1000
    }

    static func online(_ path: String = "a", epoch: UInt64 = 1, since: Double = -1000) -> NetworkState {
        NetworkState(reachable: true, epoch: epoch, changedAt: instant(since), path: path)
    }

    static func offline(epoch: UInt64 = 1, since: Double = -1000) -> NetworkState {
        NetworkState(reachable: false, epoch: epoch, changedAt: instant(since))
    }

    init(
        _ policy: RefreshPolicy = RefreshPolicy(), needsNetwork: Bool = true,
        network: NetworkState = Dialogue.online(), splay: Duration = .zero, plannedDelay: Duration = .zero,
        lastCheck: Double? = nil, retryAfter: Double? = nil, maxAge: Double? = nil, withdraws: Bool = false,
        copy: CopyState? = nil, parameters: ParameterValues = ParameterValues(), seed: UInt64 = 7
    ) {
        machine = RefreshMachine(
            RefreshSettings(
                policy: policy, needsNetwork: needsNetwork, splay: splay, plannedDelay: plannedDelay,
                maxAge: maxAge.map { .seconds($0) }, withdraws: withdraws),
            network: network,
            memory: StoredRefreshState(
                lastCheck: lastCheck.map(Self.instant), confirmed: lastCheck.map(Self.instant),
                retryAfter: retryAfter.map(Self.instant),
                hasGeneration: lastCheck != nil, copy: copy),
            parameters: parameters, jitter: Jitter(seed: seed), now: Self.beginning)
        _ = at(0)
    }

    /// Says something at a second, without letting the timers before it ring.
    func at(_ seconds: Double, _ events: Event...) -> [Permission] {
        at(Self.instant(seconds), events)
    }

    private func at(_ instant: ContinuousClock.Instant, _ events: [Event]) -> [Permission] {
        self.instant = instant
        return perform(machine.handle(events, now: instant))
    }

    /// When the machine asks to be woken.
    var wake: Double? { wakeInstant.map(Self.seconds) }
    var now: Double { Self.seconds(instant) }

    /// Lets the machine's timer ring whenever it asks for that, up to a second, which is included.
    func pass(until end: Double) -> [Moment] {
        var moments: [Moment] = []
        let end = Self.instant(end)
        while let wake = wakeInstant, wake <= end {
            let deeds = at(max(instant, wake), [.timer])
            moments += deeds.map { Moment(at: now, deed: $0) }
            if wakeInstant == wake, deeds.isEmpty {
                Issue.record("the machine asks to be woken at \(Self.seconds(wake)) over and over")
                break
            }
        }
        instant = end
        return moments
    }

    private func perform(_ actions: [RefreshMachine.Action]) -> [Permission] {
        var deeds: [Permission] = []
        // Granted after all else is done, as the engine does: what is said last holds.
        var granted: [UInt64] = []
        for action in actions {
            switch action {
            case .requestSlot(let slot):
                slotRequests.append(slot)
                if grantsSlots { granted.append(slot) }
            case .releaseSlot(let slot): slotReleases.append(slot)
            case .prove(let wish):
                wishes.append(wish)
                deeds.append(.seeksProof(epoch: wish?.epoch))
            case .start(let order):
                orders.append(order)
                deeds.append(.starts(order.run, order.causes.map(\.signal)))
            case .cancel(let run): deeds.append(.cancels(run))
            case .withdraw: deeds.append(.withdraws)
            case .putBack: deeds.append(.putsBack)
            case .wake(let instant): wakeInstant = instant
            case .answer(let request, .ended(let summary)): deeds.append(.answers(request, summary.outcome))
            case .answer(let request, .refused(let refusal)): deeds.append(.refuses(request, refusal))
            case .answer(let request, .stopped): deeds.append(.stops(request))
            case .rememberRetryAfter(let instant): deeds.append(.remembersRetryAfter(instant.map(Self.seconds)))
            case .rememberRequests: break  // seen by what the meter says
            case .report(let event):
                events.append(event)
                if case .runEnded(let summary, _) = event { summaries.append(summary) }
            }
        }
        for slot in granted { deeds += grant(slot) }
        return deeds
    }

    private func grant(_ slot: UInt64) -> [Permission] {
        perform(machine.handle(.slotGranted(slot), now: instant))
    }

    var activity: PipelineActivity { machine.activity(at: instant) }
    var waitsFor: Wait? { machine.waitsFor(at: instant) }
    var nextRun: PlannedRun? { machine.nextRun(at: instant) }
    var freshness: Freshness? { machine.freshness(at: instant) }
}

extension Dialogue.Event {
    /// Signals heard at a second, each once.
    static func hears(_ signals: String..., at seconds: Double) -> Self {
        .heard(signals.map { RunCause($0, first: Dialogue.instant(seconds)) })
    }

    static func succeeds(_ run: UInt64) -> Self {
        .ended(run: run, .succeeded(changed: true, generation: run))
    }

    static func fails(_ run: UInt64, _ kind: RunFailure.Kind, retryAfter: Duration? = nil) -> Self {
        .ended(run: run, .failed(RunFailure(kind, "it broke", retryAfter: retryAfter)))
    }
}
