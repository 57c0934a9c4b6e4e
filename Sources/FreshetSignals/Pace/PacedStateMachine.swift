/// What an operator that holds back elements by a ``PaceRule`` does: it holds one, until it is due and asked for.
///
/// Each event leads to at most one delivery, because a consumer that was answered has to ask again.
struct PacedStateMachine<Element, Rule: PaceRule, Waiter> {
    typealias Instant = Rule.Instant

    /// What an event leads to.
    struct Action {
        /// The answer to the consumer's question.
        var delivery: Element?
        /// The timekeeper is to be woken.
        var wake: Waiter?
    }

    /// What the timekeeper does next.
    enum TimeAction {
        /// Sleep until this instant, then report ``timePassed(at:)``.
        case sleep(until: Instant)
        /// Wait until it is woken.
        case wait
        /// Nothing is going to be delivered any more.
        case finish
    }

    fileprivate struct Held {
        var element: Element
        /// Nil: at once.
        var due: Instant?
    }

    private var rule: Rule
    private var held: Held?
    /// The consumer waits for an answer.
    private var isAsked = false
    private var hasEnded = false
    private var timekeeper = ConsumerStateMachine<Waiter>()

    init(rule: Rule) {
        self.rule = rule
    }

    // MARK: What happens

    /// The consumer asks. It may say so more than once until it is answered.
    mutating func asked(at now: Instant) -> Action {
        isAsked = true
        if let held, isDue(held, at: now) { return deliver(at: now) }
        // There may be a timer to set now.
        return Action(wake: held == nil ? nil : timekeeper.wake())
    }

    /// The upstream emitted.
    mutating func element(_ element: Element, at now: Instant) -> Action {
        var action = Action()
        if isAsked, let due = held?.due, due < now {
            // Its timer is late.
            action = deliver(at: now)
        }
        switch rule.arrival(at: now, isHolding: held != nil) {
        case .pass:
            held = Held(element: element, due: nil)
            if isAsked { action = deliver(at: now) }
        case .hold(let due):
            held = Held(element: element, due: due)
            if isAsked { action.wake = timekeeper.wake() }
        case .drop:
            break
        }
        return action
    }

    /// The upstream ended.
    mutating func upstreamEnded(at now: Instant) -> Action {
        hasEnded = true
        if rule.endsAtOnce { held?.due = nil }
        if isAsked, let held, isDue(held, at: now) { return deliver(at: now) }
        return Action(wake: timekeeper.wake())
    }

    /// The instant has come for which a timer was set.
    mutating func timePassed(at now: Instant) -> Action {
        // Another element may be held by now, which is due later.
        guard isAsked, let held, isDue(held, at: now) else { return Action() }
        return deliver(at: now)
    }

    // MARK: The timekeeper

    /// The timekeeper begins.
    mutating func timekeeperArrived() {
        timekeeper.arrive()
    }

    /// The timekeeper returns.
    mutating func timekeeperLeft() {
        timekeeper.leave()
    }

    /// The timekeeper asks what to do.
    func timeAction() -> TimeAction {
        guard let held else { return hasEnded ? .finish : .wait }
        // While nobody asks no timer is needed.
        guard isAsked, let due = held.due else { return .wait }
        return .sleep(until: due)
    }

    /// The timekeeper falls asleep.
    ///
    /// - Returns: The waiter, if there is something to do already.
    mutating func timekeeperSleeps(_ waiter: Waiter) -> Waiter? {
        switch timeAction() {
        case .wait: timekeeper.sleep(waiter)
        case .sleep, .finish: waiter
        }
    }

    /// The timekeeper's task was cancelled.
    mutating func cancelTimekeeper() -> Waiter? {
        timekeeper.cancel()
    }

    // MARK: -

    private func isDue(_ held: Held, at now: Instant) -> Bool {
        guard let due = held.due else { return true }
        return due <= now
    }

    private mutating func deliver(at now: Instant) -> Action {
        let element = held.take()?.element
        isAsked = false
        rule.delivered(at: now)
        // After the end the timekeeper may finish with this.
        return Action(delivery: element, wake: hasEnded ? timekeeper.wake() : nil)
    }
}

extension PacedStateMachine: Sendable where Element: Sendable, Waiter: Sendable {}
extension PacedStateMachine.Held: Sendable where Element: Sendable {}
