/// What came of asking for a proof, as each pipeline that waits for it is told.
package enum ProofResult: Hashable, Sendable {
    /// The network leads to where it should. It holds for the epoch and those before, until the instant.
    case proven(epoch: UInt64, until: ContinuousClock.Instant)
    /// Not yet, with a sentence for people that says what came instead. It is tried again, and told again if the
    /// sentence is another one.
    case refused(String)
}

/// A wish for a proof.
package struct ProofRequest: Hashable, Sendable {
    package var probe: NetworkProbe
    /// The network epoch that the proof has to be of, or of a later one.
    package var epoch: UInt64
    /// When something happened that may have changed the answer, as the operator's request: an attempt that began
    /// before is not the last word, and no back-off holds up another. Nil: nothing did.
    package var since: ContinuousClock.Instant?

    package init(_ probe: NetworkProbe, epoch: UInt64, since: ContinuousClock.Instant? = nil) {
        self.probe = probe
        self.epoch = epoch
        self.since = since
    }
}

/// Asks for one proof on behalf of all who wait for it. Events in, actions out.
///
/// There is one request at a time, however many wait. It is made while somebody waits and there is no proof: at once
/// for the first, in a new epoch, and when somebody waits because of something that happened since; else after growing
/// pauses.
struct ProbeMachine: Sendable {
    typealias Instant = ContinuousClock.Instant
    /// Somebody who waits.
    typealias Waiter = UInt64

    /// The longest that an attempt may take, from the look-up of the name to the end of the answer.
    static let deadline: Duration = .seconds(10)
    /// How long a proof holds: what one event wakes shares it, storms (`at-most`) and places in the queue included,
    /// and a session that a portal ends is noticed by the next round. Nothing asks for one while nothing is to run.
    static let validity: Duration = .seconds(30)
    /// The wait after the first attempt; each further one is twice as long.
    static let firstPause: Duration = .seconds(1)
    static let longestPause: Duration = .seconds(60)

    enum Event: Hashable, Sendable {
        /// Somebody waits for a proof, or waits on for another reason.
        case wanted(by: Waiter, epoch: UInt64, since: Instant?)
        /// Somebody does not wait any more.
        case released(Waiter)
        /// An attempt has returned; nothing of it goes on.
        case ended(attempt: UInt64, Outcome)
        case timer
    }

    enum Outcome: Hashable, Sendable {
        case proven
        case failed(RunFailure)
        case cancelled
    }

    enum Action: Hashable, Sendable {
        case ask(attempt: UInt64, epoch: UInt64)
        /// Cancels an attempt; its end is awaited.
        case cancel(attempt: UInt64)
        case tell([Waiter], ProofResult)
        /// The instant at which ``Event/timer`` is due, instead of the one before; nil: never.
        case wake(at: Instant?)
        case report(ProbeEvent)
    }

    private struct Attempt: Hashable, Sendable {
        var number: UInt64
        var epoch: UInt64
        var began: Instant
        /// Its answer is of no use any more, or too late.
        var cancellation: Cancellation?
    }

    private enum Cancellation: Hashable, Sendable {
        case outdated, late
    }

    /// While the proof fails: since when, and whether people were told.
    private struct FailurePeriod: Hashable, Sendable {
        var began: Instant
        var isTold = false
        var sentence: String
        var epoch: UInt64
    }

    private let probe: NetworkProbe
    private var waiters: Set<Waiter> = []
    /// Those of them who do not know yet why they wait.
    private var untold: Set<Waiter> = []
    private var epoch: UInt64 = 0
    private var attempt: Attempt?
    private var lastAttempt: (number: UInt64, began: Instant?) = (0, nil)
    private var proof: (epoch: UInt64, until: Instant)?
    /// The latest ``ProofRequest/since``.
    private var since: Instant?
    /// Attempts in a row that failed, and when the next one may begin.
    private var failures = 0
    private var nextAttempt: Instant?
    private var spell: FailurePeriod?
    private var lastWake: Instant?
    private var actions: [Action] = []

    init(_ probe: NetworkProbe) {
        self.probe = probe
    }

    /// Nobody waits, nothing goes on, and there is nothing to be remembered.
    func isSpent(at now: Instant) -> Bool {
        waiters.isEmpty && attempt == nil && spell?.isTold != true && !(proof.map { now < $0.until } ?? false)
    }

    mutating func handle(_ event: Event, now: Instant) -> [Action] {
        switch event {
        case .wanted(let waiter, let epoch, let since): wanted(by: waiter, epoch: epoch, since: since, now)
        case .released(let waiter):
            waiters.remove(waiter)
            untold.remove(waiter)
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

    private mutating func wanted(by waiter: Waiter, epoch: UInt64, since: Instant?, _ now: Instant) {
        if epoch > self.epoch {
            self.epoch = epoch
            failures = 0
            nextAttempt = nil
        }
        if let proof, proof.epoch >= epoch, now < proof.until {
            waiters.remove(waiter)
            untold.remove(waiter)
            actions.append(.tell([waiter], .proven(epoch: proof.epoch, until: proof.until)))
            return
        }
        waiters.insert(waiter)
        if let since {
            self.since = max(since, self.since ?? since)
            if isOutdated(lastAttempt.began) { nextAttempt = nil }
        }
        // Not if it is asked now: then the answer is to come.
        let goesOn = attempt != nil || (nextAttempt.map { now < $0 } ?? false)
        if goesOn, let spell, spell.epoch == self.epoch, !isOutdated(lastAttempt.began) {
            untold.remove(waiter)
            actions.append(.tell([waiter], .refused(spell.sentence)))
        } else {
            untold.insert(waiter)
        }
    }

    /// Whether something has happened since an attempt began.
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
        actions.append(.ask(attempt: lastAttempt.number, epoch: epoch))
    }

    private mutating func cancel(_ cancellation: Cancellation) {
        guard let number = attempt?.number, attempt?.cancellation == nil else { return }
        attempt?.cancellation = cancellation
        actions.append(.cancel(attempt: number))
    }

    private mutating func ended(_ number: UInt64, _ outcome: Outcome, _ now: Instant) {
        guard let attempt, attempt.number == number else { return }  // safe: each attempt's end is reported once
        self.attempt = nil
        // Of another network: it says nothing about this one.
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
        if let spell, spell.isTold { actions.append(.report(.proven(probe, after: spell.began.duration(to: now)))) }
        spell = nil
        guard !waiters.isEmpty else { return }
        actions.append(.tell(waiters.sorted(), .proven(epoch: attempt.epoch, until: until)))
        waiters = []
        untold = []
    }

    private mutating func refused(_ attempt: Attempt, _ failure: RunFailure, _ now: Instant) {
        failures += 1
        // safe: the pause has reached its limit after six failures; this only keeps the shift in bounds.
        let pause = min(Self.firstPause * (1 << min(failures - 1, 16)), Self.longestPause)
        nextAttempt = isOutdated(attempt.began) ? nil : now.advanced(by: pause)
        let sentence = "the network does not reach \(probe.text): \(failure.message)"
        // Of a thousand who know already, none is woken each minute.
        let listeners = spell?.sentence == sentence ? untold : waiters
        untold = []
        var spell = spell ?? FailurePeriod(began: attempt.began, sentence: sentence, epoch: epoch)
        spell.sentence = sentence
        spell.epoch = epoch
        // That names are not resolved yet, or nothing is connected, is usual while a network settles.
        let isSettling = failure.kind == .connection && now < spell.began.advanced(by: NetworkGate.grace)
        if !spell.isTold, !isSettling {
            spell.isTold = true
            actions.append(.report(.refused(probe, sentence)))
        }
        self.spell = spell
        if !listeners.isEmpty { actions.append(.tell(listeners.sorted(), .refused(sentence))) }
    }

    private var nextWake: Instant? {
        if let attempt { return attempt.cancellation == nil ? attempt.began.advanced(by: Self.deadline) : nil }
        return waiters.isEmpty ? nil : nextAttempt
    }
}

/// What people are told of a proof.
package enum ProbeEvent: Hashable, Sendable {
    /// It fails, with the sentence for people; once until it succeeds.
    case refused(NetworkProbe, String)
    /// It succeeded after it was told to fail.
    case proven(NetworkProbe, after: Duration)
}
