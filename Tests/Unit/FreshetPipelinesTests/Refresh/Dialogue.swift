import FreshetModel
import Testing

@testable import FreshetPipelines

/// Drives a refresh machine: inputs at given seconds, and the machine's actions.
///
/// Permits are granted immediately unless `grantsPermits` is false. Times are seconds since the beginning, with fractions.
final class Dialogue {
    typealias Event = RefreshMachine.Event

    /// The machine's actions, without permits and reports.
    enum Output: Equatable {
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

    /// An action, and when it happened.
    struct Moment: Equatable, CustomStringConvertible {
        var at: Double
        var output: Output
        var description: String { "\(at): \(output)" }
    }

    private(set) var machine: RefreshMachine
    var grantsPermits = true
    private(set) var permitRequests: [UInt64] = []
    private(set) var permitReleases: [UInt64] = []
    private(set) var events: [EngineEvent] = []
    private(set) var proofRequests: [ProofRequest?] = []
    private(set) var orders: [RunOrder] = []
    private(set) var summaries: [RunSummary] = []
    private var wakeInstant: BootInstant?
    private var instant = Dialogue.beginning

    /// An arbitrary beginning of time.
    static let beginning = BootInstant.now

    static func instant(_ seconds: Double) -> BootInstant {
        beginning.advanced(by: .milliseconds(Int64((seconds * 1000).rounded())))
    }

    static func seconds(_ instant: BootInstant) -> Double {
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
        copy: CopyState? = nil, parameters: ParameterValues = ParameterValues(),
        calendar: CalendarPlan? = nil, seed: UInt64 = 7
    ) {
        var settings = RefreshSettings(
            policy: policy, needsNetwork: needsNetwork, splay: splay, plannedDelay: plannedDelay,
            maxAge: maxAge.map { .seconds($0) }, withdraws: withdraws)
        settings.calendar = calendar.map(Shared.init(wrappedValue:))
        machine = RefreshMachine(
            settings, network: network,
            memory: StoredRefreshState(
                lastCheck: lastCheck.map(Self.instant), confirmed: lastCheck.map(Self.instant),
                retryAfter: retryAfter.map(Self.instant),
                hasGeneration: lastCheck != nil, copy: copy),
            parameters: parameters, jitter: Jitter(seed: seed), now: Self.beginning)
        _ = at(0)
    }

    /// Passes an event at a second, without firing earlier timers.
    func at(_ seconds: Double, _ events: Event...) -> [Output] {
        at(Self.instant(seconds), events)
    }

    private func at(_ instant: BootInstant, _ events: [Event]) -> [Output] {
        self.instant = instant
        return perform(machine.handle(events, now: instant))
    }

    /// When the machine's timer is due.
    var wake: Double? { wakeInstant.map(Self.seconds) }
    var now: Double { Self.seconds(instant) }

    /// Fires the machine's timer whenever it is due, up to and including a second.
    func pass(until end: Double) -> [Moment] {
        var moments: [Moment] = []
        let end = Self.instant(end)
        while let wake = wakeInstant, wake <= end {
            let outputs = at(max(instant, wake), [.timer])
            moments += outputs.map { Moment(at: now, output: $0) }
            if wakeInstant == wake, outputs.isEmpty {
                Issue.record("the machine sets its timer to \(Self.seconds(wake)) endlessly")
                break
            }
        }
        instant = end
        return moments
    }

    private func perform(_ actions: [RefreshMachine.Action]) -> [Output] {
        var outputs: [Output] = []
        // Granted after everything else, as the engine does: the last state counts.
        var granted: [UInt64] = []
        for action in actions {
            switch action {
            case .requestPermit(let permit):
                permitRequests.append(permit)
                if grantsPermits { granted.append(permit) }
            case .releasePermit(let permit): permitReleases.append(permit)
            case .prove(let proofRequest):
                proofRequests.append(proofRequest)
                outputs.append(.seeksProof(epoch: proofRequest?.epoch))
            case .start(let order):
                orders.append(order)
                outputs.append(.starts(order.run, order.causes.map(\.signal)))
            case .cancel(let run): outputs.append(.cancels(run))
            case .withdraw: outputs.append(.withdraws)
            case .putBack: outputs.append(.putsBack)
            case .wake(let instant): wakeInstant = instant
            case .answer(let request, .ended(let summary)): outputs.append(.answers(request, summary.outcome))
            case .answer(let request, .refused(let rejection)): outputs.append(.refuses(request, rejection))
            case .answer(let request, .stopped): outputs.append(.stops(request))
            case .rememberRetryAfter(let instant): outputs.append(.remembersRetryAfter(instant.map(Self.seconds)))
            case .rememberRequests: break  // visible in the meter
            case .report(let event):
                events.append(event)
                if case .runEnded(let summary, _) = event { summaries.append(summary) }
            }
        }
        for permit in granted { outputs += grant(permit) }
        return outputs
    }

    private func grant(_ permit: UInt64) -> [Output] {
        perform(machine.handle(.permitGranted(permit), now: instant))
    }

    var activity: PipelineActivity { machine.activity(at: instant) }
    var waitsFor: Wait? { machine.waitsFor(at: instant) }
    var nextRun: PlannedRun? { machine.nextRun(at: instant) }
    var freshness: Freshness? { machine.freshness(at: instant) }
}

extension Dialogue.Event {
    /// Signals received at a second, one firing each.
    static func receives(_ signals: String..., at seconds: Double) -> Self {
        .received(signals.map { RunCause($0, first: Dialogue.instant(seconds)) })
    }

    static func succeeds(_ run: UInt64) -> Self {
        .ended(run: run, .succeeded(changed: true, generation: run))
    }

    static func fails(_ run: UInt64, _ kind: RunFailure.Kind, retryAfter: Duration? = nil) -> Self {
        .ended(run: run, .failed(RunFailure(kind, "it broke", retryAfter: retryAfter)))
    }
}

extension RefreshMachine {
    mutating func handle(_ event: Event, now: Instant) -> [Action] { handle([event], now: now) }
}
