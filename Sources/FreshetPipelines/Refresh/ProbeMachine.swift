package import FreshetModel

/// The result of a proof, which every waiting pipeline gets.
package enum ProofResult: Hashable, Sendable {
    /// The network reaches the internet. The proof holds for this epoch and earlier ones, until the instant.
    case proven(epoch: UInt64, until: BootInstant)
    /// The proof failed, with a sentence for people about the answer. It is retried; the waiting pipelines are notified
    /// again if the sentence changes.
    case refused(String)
}

/// A request for a proof.
package struct ProofRequest: Hashable, Sendable {
    package var probe: NetworkProbe
    /// The proof must be of this network epoch or a later one.
    package var epoch: UInt64
    /// When an event may have changed the answer, such as a request of the operator: an earlier attempt is not
    /// decisive, and the next one does not wait for the backoff. Nil: there was no such event.
    package var since: BootInstant?

    package init(_ probe: NetworkProbe, epoch: UInt64, since: BootInstant? = nil) {
        self.probe = probe
        self.epoch = epoch
        self.since = since
    }
}

/// Obtains one proof for all waiting pipelines. A state machine: events in, actions out.
///
/// There is at most one request at a time, however many pipelines wait. It is made while a pipeline waits and there is
/// no proof: immediately for the first pipeline, in a new epoch, and after an event that may have changed the answer;
/// otherwise after growing pauses.
struct ProbeMachine: Sendable {
    typealias Instant = BootInstant
    /// A waiting pipeline.
    typealias Waiter = UInt64

    /// The longest time that an attempt may take, from the look-up of the name to the end of the answer.
    static let deadline: Duration = .seconds(10)
    /// How long a proof holds. All runs that one event wakes share it, including bursts (`at-most`) and the wait in the
    /// queue; the next round notices a session that a portal has ended. No proof is requested while no run waits.
    static let validity: Duration = .seconds(30)
    /// The wait after the first attempt; each further wait is twice as long.
    static let firstPause: Duration = .seconds(1)
    static let longestPause: Duration = .seconds(60)

    enum Event: Hashable, Sendable {
        /// A pipeline waits for a proof, or still waits for another reason.
        case requested(by: Waiter, epoch: UInt64, since: Instant?)
        /// A pipeline does not wait any more.
        case released(Waiter)
        /// An attempt has ended completely.
        case ended(attempt: UInt64, Outcome)
        case timer
    }

    enum Outcome: Hashable, Sendable {
        case proven
        case failed(RunFailure)
        case cancelled
    }

    enum Action: Hashable, Sendable {
        case start(attempt: UInt64, epoch: UInt64)
        /// Cancels an attempt; its end is still reported.
        case cancel(attempt: UInt64)
        case notify([Waiter], ProofResult)
        /// The next instant of ``Event/timer``, which replaces the previous one; nil: never.
        case wake(at: Instant?)
        case report(ProbeEvent)
    }

    private struct Attempt: Hashable, Sendable {
        var number: UInt64
        var epoch: UInt64
        var began: Instant
        /// Why the attempt was cancelled.
        var cancellation: Cancellation?
    }

    private enum Cancellation: Hashable, Sendable {
        case outdated, late
    }

    /// A period in which the proof fails: its beginning, and whether it was reported.
    private struct FailurePeriod: Hashable, Sendable {
        var began: Instant
        var isNotified = false
        var sentence: String
        var epoch: UInt64
    }

    private let probe: NetworkProbe
    private var waiters: Set<Waiter> = []
    /// The waiters that have not been notified yet of the reason.
    private var unnotified: Set<Waiter> = []
    private var epoch: UInt64 = 0
    private var attempt: Attempt?
    private var lastAttempt: (number: UInt64, began: Instant?) = (0, nil)
    private var proof: (epoch: UInt64, until: Instant)?
    /// The latest ``ProofRequest/since``.
    private var since: Instant?
    /// Consecutive failed attempts, and when the next one may begin.
    private var failures = 0
    private var nextAttempt: Instant?
    private var failurePeriod: FailurePeriod?
    private var lastWake: Instant?
    private var actions: [Action] = []

    init(_ probe: NetworkProbe) {
        self.probe = probe
    }

    /// Whether the machine may be dropped: no pipeline waits, no attempt is in progress, and no state is needed.
    func isIdle(at now: Instant) -> Bool {
        waiters.isEmpty && attempt == nil && failurePeriod?.isNotified != true
            && !(proof.map { now < $0.until } ?? false)
    }

    mutating func handle(_ event: Event, now: Instant) -> [Action] {
        switch event {
        case .requested(let waiter, let epoch, let since): requested(by: waiter, epoch: epoch, since: since, now)
        case .released(let waiter):
            waiters.remove(waiter)
            unnotified.remove(waiter)
        case .ended(let number, let outcome): ended(number, outcome, now)
        case .timer: break
        }
        proceed(now)
        let wake = nextWake
        if wake != lastWake {
            lastWake = wake
            actions.append(.wake(at: wake))
        }
        defer { actions = [] }
        return actions
    }

    private mutating func requested(by waiter: Waiter, epoch: UInt64, since: Instant?, _ now: Instant) {
        if epoch > self.epoch {
            self.epoch = epoch
            failures = 0
            nextAttempt = nil
        }
        if let proof, proof.epoch >= epoch, now < proof.until {
            waiters.remove(waiter)
            unnotified.remove(waiter)
            actions.append(.notify([waiter], .proven(epoch: proof.epoch, until: proof.until)))
            return
        }
        waiters.insert(waiter)
        if let since {
            self.since = max(since, self.since ?? since)
            if isOutdated(lastAttempt.began) { nextAttempt = nil }
        }
        // Not if an attempt begins now: then its answer is awaited.
        let isPending = attempt != nil || (nextAttempt.map { now < $0 } ?? false)
        if isPending, let failurePeriod, failurePeriod.epoch == self.epoch, !isOutdated(lastAttempt.began) {
            unnotified.remove(waiter)
            actions.append(.notify([waiter], .refused(failurePeriod.sentence)))
        } else {
            unnotified.insert(waiter)
        }
    }

    /// Whether an event since the beginning of an attempt may have changed the answer.
    private func isOutdated(_ began: Instant?) -> Bool {
        guard let began, let since else { return false }
        return began < since
    }

    private mutating func proceed(_ now: Instant) {
        if let attempt {
            if waiters.isEmpty || attempt.epoch < epoch {
                cancel(.outdated)
            } else if now >= attempt.began.advanced(by: Self.deadline) {
                cancel(.late)
            }
            return
        }
        guard !waiters.isEmpty, nextAttempt.map({ now >= $0 }) ?? true else { return }
        lastAttempt = (lastAttempt.number + 1, now)
        attempt = Attempt(number: lastAttempt.number, epoch: epoch, began: now)
        nextAttempt = nil
        actions.append(.start(attempt: lastAttempt.number, epoch: epoch))
    }

    private mutating func cancel(_ cancellation: Cancellation) {
        guard let number = attempt?.number, attempt?.cancellation == nil else { return }
        attempt?.cancellation = cancellation
        actions.append(.cancel(attempt: number))
    }

    private mutating func ended(_ number: UInt64, _ outcome: Outcome, _ now: Instant) {
        guard let attempt, attempt.number == number else { return }  // safe: each attempt's end is reported once
        self.attempt = nil
        // An attempt on another network says nothing about this one.
        guard attempt.epoch == epoch else { return }
        switch outcome {
        case .proven: proven(attempt, now)
        case .failed(let failure) where attempt.cancellation == nil: refused(attempt, failure, now)
        case .failed, .cancelled:
            guard attempt.cancellation == .late else { return }
            let seconds = Self.deadline.components.seconds
            refused(attempt, RunFailure(.connection, "no answer within \(seconds) s"), now)
        }
    }

    private mutating func proven(_ attempt: Attempt, _ now: Instant) {
        let until = now.advanced(by: Self.validity)
        proof = (attempt.epoch, until)
        failures = 0
        if let failurePeriod, failurePeriod.isNotified {
            actions.append(.report(.proven(probe, after: failurePeriod.began.duration(to: now))))
        }
        failurePeriod = nil
        guard !waiters.isEmpty else { return }
        actions.append(.notify(waiters.sorted(), .proven(epoch: attempt.epoch, until: until)))
        waiters = []
        unnotified = []
    }

    private mutating func refused(_ attempt: Attempt, _ failure: RunFailure, _ now: Instant) {
        failures += 1
        // safe: the pause has reached its limit after six failures; this only keeps the shift in bounds.
        let pause = min(Self.firstPause * (1 << min(failures - 1, 16)), Self.longestPause)
        nextAttempt = isOutdated(attempt.began) ? nil : now.advanced(by: pause)
        let sentence = "the network does not reach \(probe.text): \(failure.message)"
        // Pipelines that know this sentence already are not woken each minute.
        let recipients = failurePeriod?.sentence == sentence ? unnotified : waiters
        unnotified = []
        var failurePeriod = failurePeriod ?? FailurePeriod(began: attempt.began, sentence: sentence, epoch: epoch)
        failurePeriod.sentence = sentence
        failurePeriod.epoch = epoch
        // A failure to resolve or connect is usual while a network settles.
        let isSettling = failure.kind == .connection && now < failurePeriod.began.advanced(by: NetworkGate.grace)
        if !failurePeriod.isNotified, !isSettling {
            failurePeriod.isNotified = true
            actions.append(.report(.refused(probe, sentence)))
        }
        self.failurePeriod = failurePeriod
        if !recipients.isEmpty { actions.append(.notify(recipients.sorted(), .refused(sentence))) }
    }

    private var nextWake: Instant? {
        if let attempt { return attempt.cancellation == nil ? attempt.began.advanced(by: Self.deadline) : nil }
        return waiters.isEmpty ? nil : nextAttempt
    }
}

/// An event of a proof for the journal.
package enum ProbeEvent: Hashable, Sendable {
    /// The proof fails, with the sentence for people; reported once until it succeeds.
    case refused(NetworkProbe, String)
    /// The proof succeeded after a reported failure.
    case proven(NetworkProbe, after: Duration)
}
