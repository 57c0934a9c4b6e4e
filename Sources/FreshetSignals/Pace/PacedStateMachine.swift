/// Holds back one element by a ``PaceRule``, until the element is due and requested.
///
/// Each event leads to at most one delivery, because the consumer has to make a new request after an answer.
struct PacedStateMachine<Element, Rule: PaceRule, Waiter> {
    typealias Instant = Rule.Instant

    /// The effects of an event.
    struct Action {
        /// The answer to the consumer's request.
        var delivery: Element?
        /// The timekeeper, if it has to be woken.
        var wake: Waiter?
    }

    /// The next action of the timekeeper.
    enum TimeAction {
        /// Sleep until this instant, then report ``timePassed(at:)``.
        case sleep(until: Instant)
        /// Wait until it is woken.
        case wait
        /// No element will be delivered any more.
        case finish
    }

    fileprivate struct Held {
        var element: Element
        /// Nil: immediately.
        var due: Instant?
    }

    private var rule: Rule
    private var held: Held?
    /// The consumer waits for an element.
    private var isRequested = false
    private var hasEnded = false
    private var timekeeper = ConsumerStateMachine<Waiter>()

    init(rule: Rule) {
        self.rule = rule
    }

    // MARK: Events

    /// The consumer requests an element. It may repeat the request until it gets an answer.
    mutating func requested(at now: Instant) -> Action {
        isRequested = true
        if let held, isDue(held, at: now) { return deliver(at: now) }
        // The timekeeper may have to set a timer now.
        return Action(wake: held == nil ? nil : timekeeper.wake())
    }

    /// The upstream emitted.
    mutating func element(_ element: Element, at now: Instant) -> Action {
        var action = Action()
        if isRequested, let due = held?.due, due < now {
            // The timer of the held element is late.
            action = deliver(at: now)
        }
        switch rule.arrival(at: now, isHolding: held != nil) {
        case .pass:
            held = Held(element: element, due: nil)
            if isRequested { action = deliver(at: now) }
        case .hold(let due):
            held = Held(element: element, due: due)
            if isRequested { action.wake = timekeeper.wake() }
        case .drop:
            break
        }
        return action
    }

    /// The upstream ended.
    mutating func upstreamEnded(at now: Instant) -> Action {
        hasEnded = true
        if rule.flushesAtEnd { held?.due = nil }
        if isRequested, let held, isDue(held, at: now) { return deliver(at: now) }
        return Action(wake: timekeeper.wake())
    }

    /// The instant of the timer has come.
    mutating func timePassed(at now: Instant) -> Action {
        // A newer element, which is due later, may be held by now.
        guard isRequested, let held, isDue(held, at: now) else { return Action() }
        return deliver(at: now)
    }

    // MARK: The timekeeper

    /// The timekeeper begins.
    mutating func timekeeperArrived() {
        timekeeper.arrive()
    }

    /// The timekeeper ends.
    mutating func timekeeperLeft() {
        timekeeper.leave()
    }

    /// Returns the next action of the timekeeper.
    func timeAction() -> TimeAction {
        guard let held else { return hasEnded ? .finish : .wait }
        // No timer is needed without a request.
        guard isRequested, let due = held.due else { return .wait }
        return .sleep(until: due)
    }

    /// The timekeeper falls asleep.
    ///
    /// - Returns: The waiter, if there already is something to do.
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
        isRequested = false
        rule.delivered(at: now)
        // After the end of the upstream this delivery may let the timekeeper finish.
        return Action(delivery: element, wake: hasEnded ? timekeeper.wake() : nil)
    }
}

extension PacedStateMachine: Sendable where Element: Sendable, Waiter: Sendable {}
extension PacedStateMachine.Held: Sendable where Element: Sendable {}
