import FreshetEventLoop
import Glibc
import Synchronization

/// Shares an event loop fairly among users. In each round of the loop, each user has the same share of the loop's time
/// for the turns of the user's connections, in the order of their arrival. So a user with many connections delays other
/// users no more than a user with a single connection.
///
/// The time is that of CLOCK_MONOTONIC (clock_gettime(2)), which is read without a system call. Other load on the
/// processor makes turns shorter, for all users. To read the processor time instead, three times in each call, would
/// take a tenth of a short call.
final class FairScheduler: Sendable {
    /// A turn that has begun.
    struct Turn {
        fileprivate let user: UInt32
        fileprivate let ticket: Ticket
        fileprivate let share: Duration
        private let began = FairScheduler.now

        fileprivate init(_ user: UInt32, _ ticket: Ticket, _ share: Duration) {
            self.user = user
            self.ticket = ticket
            self.share = share
        }

        /// The time since the turn began. It includes the time of other tasks while a call waits. Ending a turn too
        /// early only costs one pass through the loop's queue.
        fileprivate var used: Duration { .nanoseconds(FairScheduler.now - began) }
        var isOver: Bool { used > share }
    }

    fileprivate typealias Ticket = UInt64

    /// The waiting connections of one user, in the order of their arrival.
    private struct UserQueue {
        private var tickets: [Ticket] = []
        /// The index of the first waiting ticket.
        private var head = 0

        var isEmpty: Bool { head == tickets.count }

        mutating func append(_ ticket: Ticket) {
            // Under continuous load the queue is never empty, so its used part is removed here.
            if head > 64, head * 2 > tickets.count {
                tickets.removeFirst(head)
                head = 0
            }
            tickets.append(ticket)
        }

        mutating func next() -> Ticket? {
            guard head < tickets.count else { return nil }
            head += 1
            return tickets[head - 1]
        }
    }

    private struct State {
        let share: Duration
        var queues: [UInt32: UserQueue] = [:]
        /// The waiting tickets, until their turn begins or their task is cancelled; nil: the task has not suspended
        /// yet.
        var waiting: [Ticket: CheckedContinuation<Void, Never>?] = [:]
        /// The time that each user has used in this round.
        var spent: [UInt32: Duration] = [:]
        /// The turns of this round that have not ended.
        var active: [UInt32: Ticket] = [:]
        var lastTicket: Ticket = 0
        var isRoundPlanned = false

        /// Returns whether the caller has to schedule the next round.
        mutating func takePlan() -> Bool {
            defer { isRoundPlanned = true }
            return !isRoundPlanned
        }

        /// Adds a ticket for a user; `begins` says whether its turn begins immediately.
        mutating func enter(_ user: UInt32) -> (Ticket, begins: Bool) {
            if let ticket = enterImmediately(user) { return (ticket, true) }
            lastTicket += 1
            queues[user, default: UserQueue()].append(lastTicket)
            waiting[lastTicket] = .some(nil)
            return (lastTicket, false)
        }

        /// Adds a ticket for a user and begins its turn; nil: the user's turn does not begin immediately.
        mutating func enterImmediately(_ user: UInt32) -> Ticket? {
            guard queues[user] == nil, mayBegin(user) else { return nil }
            lastTicket += 1
            active[user] = lastTicket
            return lastTicket
        }

        /// Begins the turn of a user's next waiting connection.
        mutating func beginNext(of user: UInt32) -> CheckedContinuation<Void, Never>? {
            guard mayBegin(user) else { return nil }
            defer { if queues[user]?.isEmpty == true { queues[user] = nil } }
            while let ticket = queues[user]?.next() {
                guard let continuation = waiting.removeValue(forKey: ticket) else { continue }
                active[user] = ticket
                return continuation
            }
            return nil
        }

        private func mayBegin(_ user: UInt32) -> Bool {
            active[user] == nil && spent[user, default: .zero] < share
        }
    }

    private let loop: EventLoop
    /// The time of a user in one round, and of a turn. After it, a client that sends without a pause waits
    /// until all others have had a turn.
    private let share: Duration
    private let state: Mutex<State>

    init(_ loop: EventLoop, share: Duration = .microseconds(200)) {
        self.loop = loop
        self.share = share
        state = Mutex(State(share: share))
    }

    /// Waits until a turn of this user begins. Returns immediately if no turn of the user is in progress and the user
    /// has time left in this round, or if the task is cancelled.
    func begin(_ user: UInt32) async -> Turn {
        let (ticket, begins, plans) = state.withLock { state in
            let (ticket, begins) = state.enter(user)
            return (ticket, begins, state.takePlan())
        }
        if plans { planRound() }
        if begins { return Turn(user, ticket, share) }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = state.withLock { $0.waiting.updateIfPresent(continuation, forKey: ticket) }
                if !waits { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiting.removeValue(forKey: ticket) }
            if let continuation = waiter ?? nil { continuation.resume() }
        }
        return Turn(user, ticket, share)
    }

    /// Begins a turn if it begins immediately.
    func beginImmediately(_ user: UInt32) -> Turn? {
        let (ticket, plans) = state.withLock { state -> (Ticket?, Bool) in
            guard let ticket = state.enterImmediately(user) else { return (nil, false) }
            return (ticket, state.takePlan())
        }
        if plans { planRound() }
        return ticket.map { Turn(user, $0, share) }
    }

    /// Ends a turn. The user's next connection gets the rest of its time.
    func end(_ turn: Turn) {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.active[turn.user] == turn.ticket else { return nil }
            state.active[turn.user] = nil
            state.spent[turn.user, default: .zero] += turn.used
            return state.beginNext(of: turn.user)
        }
        next?.resume()
    }

    /// The number of waiting connections, for tests.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Nanoseconds of CLOCK_MONOTONIC.
    fileprivate static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    private func planRound() {
        loop.perform(named: "control turns") { [weak self] in self?.beginRound() }
    }

    private func beginRound() {
        let (next, plans) = state.withLock { state -> ([CheckedContinuation<Void, Never>], Bool) in
            state.isRoundPlanned = false
            state.spent.removeAll(keepingCapacity: true)
            state.active.removeAll(keepingCapacity: true)
            let users = Array(state.queues.keys)
            return (users.compactMap { state.beginNext(of: $0) }, users.isEmpty ? false : state.takePlan())
        }
        if plans { planRound() }
        for continuation in next { continuation.resume() }
    }
}

extension Dictionary {
    /// Replaces the value of a key; returns false if the key does not exist.
    fileprivate mutating func updateIfPresent(_ value: Value, forKey key: Key) -> Bool {
        guard let index = index(forKey: key) else { return false }
        values[index] = value
        return true
    }
}
