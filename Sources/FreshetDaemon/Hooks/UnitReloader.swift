import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSystemSignals
import Synchronization

/// Reloads units through the service manager's D-Bus interface (org.freedesktop.systemd1(5)), and waits for the result.
///
/// Root may reload units, and so may a user in the user's own service manager. All others need a polkit rule.
struct UnitReloader: Sendable {
    private static let name = "org.freedesktop.systemd1"
    private static let path = "/org/freedesktop/systemd1"
    private static let interface = "org.freedesktop.systemd1.Manager"

    private let loop: EventLoop
    private let systemBus: BusConnection
    private let isPersonal: Bool
    private let clock: any EngineClock

    /// - Parameter isPersonal: the daemon is a user's own service, and the units belong to the user's service manager.
    init(_ loop: EventLoop, _ systemBus: BusConnection, isPersonal: Bool, clock: any EngineClock) {
        self.loop = loop
        self.systemBus = systemBus
        self.isPersonal = isPersonal
        self.clock = clock
    }

    /// Returns when the unit has been reloaded. A unit that does not run is not reloaded: it reads the copy when it
    /// starts.
    func reload(_ unit: String, within timeout: Duration) async throws(FetchError) {
        let bus = isPersonal ? BusConnection(loop, .session) : systemBus
        let match: BusMatch
        do throws(BusMatch.InvalidMatch) {
            match = try BusMatch(
                sender: Self.name, path: Self.path, interface: Self.interface, member: "JobRemoved")
        } catch {
            throw .failed(RunFailure(.local, error.description))  // safe: the names are those of systemd
        }
        let job = ReloadJob()
        // The job may end before the reply is read, so the subscription to its end comes first.
        let subscription = bus.subscribe(match) { subscriptionState in
            switch subscriptionState {
            case .active(sender: .some):
                guard job.begin() else { return }
                bus.call(
                    "ReloadUnit", of: Self.interface, at: Self.path, on: Self.name,
                    [.string(unit), .string("replace")], timeout: timeout
                ) { job.answered($0) }
            case .active(sender: nil): job.end(.unreachable("the service manager is not on the bus"))
            case .refused(let reason), .disconnected(let reason): job.end(.unreachable(reason))
            case .connecting: break
            }
        } _: { message in
            job.removed(message.arguments)
        }
        let timer = clock.makeTimer { job.end(.late) }
        timer.arm(at: clock.now + timeout)
        let outcome = await withTaskCancellationHandler {
            await job.outcome()
        } onCancel: {
            job.end(.cancelled)
        }
        timer.disarm()
        subscription.cancel()
        try judge(outcome, unit, timeout)
    }

    private func judge(_ outcome: ReloadJob.Outcome, _ unit: String, _ timeout: Duration) throws(FetchError) {
        let failure: String
        switch outcome {
        // "invalid": the unit is not active.
        case .ended("done"), .ended("skipped"), .ended("invalid"): return
        case .cancelled: throw .cancelled
        case .ended(let result): failure = "its job ended with '\(result)'; see 'systemctl status \(unit)'"
        case .late: failure = "it took longer than \(timeout)"
        case .unreachable(let reason): failure = reason
        case .refused(let error) where Self.denials.contains(error.name):
            failure =
                "polkit refused it; to permit it, put the rule that 'freshetctl check --polkit' prints into "
                + Polkit.ruleFile
        case .refused(let error) where error.name == "org.freedesktop.systemd1.UnitInactive": return
        case .refused(let error): failure = error.description
        }
        throw .failed(RunFailure(.local, "\(unit) was not reloaded: \(failure)"))
    }

    /// The D-Bus errors of a denied call: without an interactive authentication agent, and without polkit.
    private static let denials = [
        "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
    ]
}

/// Waits for a job of the service manager. Safe to call from any thread.
private final class ReloadJob: Sendable {
    enum Outcome: Sendable {
        /// The result of the job, see `JobRemoved` in org.freedesktop.systemd1(5).
        case ended(String)
        case refused(BusError)
        case unreachable(String)
        case late
        case cancelled
    }

    private struct State {
        var hasBegun = false
        /// The job's path.
        var job: String?
        /// The results of all jobs that ended before the reply with the job's path arrived.
        var results: [String: String] = [:]
        var outcome: Outcome?
        var waiter: CheckedContinuation<Outcome, Never>?
    }

    private let state = Mutex(State())

    /// Returns true for the first call only, so that a new connection does not reload the unit again.
    func begin() -> Bool {
        state.withLock { state in
            defer { state.hasBegun = true }
            return !state.hasBegun && state.outcome == nil
        }
    }

    func answered(_ answer: Result<[BusValue], BusError>) {
        switch answer {
        case .failure(let error): end(.refused(error))
        case .success(let values):
            guard case .objectPath(let job)? = values.first else {
                return end(.unreachable("the reply of the service manager contains no job"))
            }
            let result = state.withLock { state in
                state.job = job
                return state.results[job]
            }
            if let result { end(.ended(result)) }
        }
    }

    /// Handles the signal `JobRemoved`; its arguments are the job's number, path, unit and result.
    func removed(_ arguments: [BusValue]?) {
        guard let arguments, arguments.count == 4, case .objectPath(let job) = arguments[1],
            case .string(let result) = arguments[3]
        else { return }
        let isOurs = state.withLock { state in
            if state.job == nil, state.hasBegun { state.results[job] = result }
            return state.job == job
        }
        if isOurs { end(.ended(result)) }
    }

    func end(_ outcome: Outcome) {
        let waiter = state.withLock { state in
            if state.outcome == nil { state.outcome = outcome }
            return state.waiter.take()
        }
        waiter?.resume(returning: state.withLock { $0.outcome } ?? outcome)
    }

    func outcome() async -> Outcome {
        await withCheckedContinuation { continuation in
            let known = state.withLock { state in
                if state.outcome == nil { state.waiter = continuation }
                return state.outcome
            }
            if let known { continuation.resume(returning: known) }
        }
    }
}
