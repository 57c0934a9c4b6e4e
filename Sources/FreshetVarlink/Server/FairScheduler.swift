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
        fileprivate let share: Nanoseconds
        private let began = FairScheduler.now

        fileprivate init(_ user: UInt32, _ ticket: Ticket, _ share: Nanoseconds) {
            self.user = user
            self.ticket = ticket
            self.share = share
        }

        /// The time since the turn began. It includes the time of other tasks while a call waits. Ending a turn too
        /// early only costs one pass through the loop's queue.
        fileprivate var used: Nanoseconds { FairScheduler.now - began }
        var isOver: Bool { used > share }
    }

    fileprivate typealias Ticket = UInt64
    fileprivate typealias Nanoseconds = Int64

    /// A waiting connection.
    private struct Waiter {
        let ticket: Ticket
        /// Nil: the task has not suspended yet.
        var continuation: CheckedContinuation<Void, Never>?
        /// Whether the task was cancelled.
        var isGone = false
    }

    /// The connections of one user.
    private struct User {
        let number: UInt32
        /// The time that the user has used in this round.
        var spent: Nanoseconds = 0
        /// The turn of this round that has not ended.
        var active: Ticket?
        /// The waiting connections, in the order of their arrival.
        private var waiters: [Waiter] = []
        /// The index of the first waiting connection.
        private var head = 0

        init(_ number: UInt32) { self.number = number }

        var hasWaiters: Bool { head < waiters.count }
        var waitingCount: Int { waiters[head...].count { !$0.isGone } }

        mutating func append(_ ticket: Ticket) {
            // Under continuous load the queue is never empty, so its used part is removed here.
            if head > 64, head * 2 > waiters.count {
                waiters.removeFirst(head)
                head = 0
            }
            waiters.append(Waiter(ticket: ticket))
        }

        /// Changes a connection that waits; returns false if it does not wait any more.
        mutating func change(_ ticket: Ticket, _ body: (inout Waiter) -> Void) -> Bool {
            guard let index = waiters[head...].firstIndex(where: { $0.ticket == ticket && !$0.isGone }) else {
                return false
            }
            body(&waiters[index])
            return true
        }

        /// Begins the turn of the next waiting connection, and returns its task, if that has suspended.
        mutating func beginNext() -> CheckedContinuation<Void, Never>? {
            while head < waiters.count, active == nil {
                let waiter = waiters[head]
                waiters[head].continuation = nil
                head += 1
                if !waiter.isGone { active = waiter.ticket }
                if head == waiters.count {
                    waiters.removeAll(keepingCapacity: true)
                    head = 0
                }
                if !waiter.isGone { return waiter.continuation }
            }
            return nil
        }
    }

    private struct State {
        let share: Nanoseconds
        /// The users with a turn in this round or a waiting connection: fewer than there are connections, and usually
        /// one or two, which are found faster than they are hashed.
        var users: [User] = []
        var lastTicket: Ticket = 0
        /// The iteration of the loop in which this round began.
        var iteration: UInt64 = 0
        /// Whether the loop will begin the next round. It will if a connection waits.
        var isRoundPlanned = false

        /// Begins a round if the loop is in a new iteration and no connection waits. So a client that calls now and then
        /// costs no further job of the loop.
        mutating func iterationIs(_ number: UInt64) {
            guard iteration != number, !isRoundPlanned else { return }
            iteration = number
            users.removeAll(keepingCapacity: true)
        }

        /// Returns whether the caller has to schedule the next round.
        mutating func takePlan() -> Bool {
            defer { isRoundPlanned = true }
            return !isRoundPlanned
        }

        func index(of user: UInt32) -> Int? { users.firstIndex { $0.number == user } }

        /// Adds a ticket for a user; `begins` says whether its turn begins immediately.
        mutating func enter(_ user: UInt32) -> (Ticket, begins: Bool) {
            let index = index(adding: user)
            lastTicket += 1
            if users[index].hasWaiters || !mayBegin(index) {
                users[index].append(lastTicket)
                return (lastTicket, false)
            }
            users[index].active = lastTicket
            return (lastTicket, true)
        }

        /// Adds a ticket for a user and begins its turn; nil: the user's turn does not begin immediately.
        mutating func enterImmediately(_ user: UInt32) -> Ticket? {
            let index = index(adding: user)
            guard !users[index].hasWaiters, mayBegin(index) else { return nil }
            lastTicket += 1
            users[index].active = lastTicket
            return lastTicket
        }

        private mutating func index(adding user: UInt32) -> Int {
            if let index = index(of: user) { return index }
            users.append(User(user))
            return users.count - 1
        }

        /// Begins the turn of a user's next waiting connection.
        mutating func beginNext(_ index: Int) -> CheckedContinuation<Void, Never>? {
            mayBegin(index) ? users[index].beginNext() : nil
        }

        /// Gives each user that waits its share again, and begins turns.
        mutating func beginRound() -> [CheckedContinuation<Void, Never>] {
            isRoundPlanned = false
            users.removeAll { !$0.hasWaiters }
            return users.indices.compactMap { index in
                (users[index].spent, users[index].active) = (0, nil)
                return beginNext(index)
            }
        }

        private func mayBegin(_ index: Int) -> Bool {
            users[index].active == nil && users[index].spent < share
        }
    }

    private let loop: EventLoop
    /// The time of a user in one round, and of a turn. After it, a client that sends without a pause waits
    /// until all others have had a turn.
    private let share: Nanoseconds
    private let state: Mutex<State>

    init(_ loop: EventLoop, share: Duration = .microseconds(200)) {
        self.loop = loop
        let (seconds, attoseconds) = share.components
        self.share = seconds * 1_000_000_000 + attoseconds / 1_000_000_000
        state = Mutex(State(share: self.share))
    }

    /// Waits until a turn of this user begins. Returns immediately if no turn of the user is in progress and the user
    /// has time left in this round, or if the task is cancelled.
    func begin(_ user: UInt32) async -> Turn {
        let (ticket, begins, plans) = state.withLock { state in
            state.iterationIs(loop.iteration)
            let (ticket, begins) = state.enter(user)
            return (ticket, begins, begins ? false : state.takePlan())
        }
        if plans { planRound() }
        if begins { return Turn(user, ticket, share) }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if !change(user, ticket, { $0.continuation = continuation }) { continuation.resume() }
            }
        } onCancel: {
            var continuation: CheckedContinuation<Void, Never>?
            _ = change(user, ticket) { waiter in
                waiter.isGone = true
                continuation = waiter.continuation.take()
            }
            continuation?.resume()
        }
        return Turn(user, ticket, share)
    }

    /// Changes a waiting connection; returns false if it does not wait any more.
    private func change(_ user: UInt32, _ ticket: Ticket, _ body: (inout Waiter) -> Void) -> Bool {
        state.withLock { state in
            guard let index = state.index(of: user) else { return false }
            return state.users[index].change(ticket, body)
        }
    }

    /// Begins a turn if it begins immediately.
    func beginImmediately(_ user: UInt32) -> Turn? {
        let ticket = state.withLock { state in
            state.iterationIs(loop.iteration)
            return state.enterImmediately(user)
        }
        return ticket.map { Turn(user, $0, share) }
    }

    /// Ends a turn. The user's next connection gets the rest of its time.
    func end(_ turn: Turn) {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let index = state.index(of: turn.user), state.users[index].active == turn.ticket else { return nil }
            state.users[index].active = nil
            state.users[index].spent += turn.used
            return state.beginNext(index)
        }
        next?.resume()
    }

    /// The number of waiting connections, for tests.
    var waitingCount: Int { state.withLock { $0.users.reduce(0) { $0 + $1.waitingCount } } }

    /// Nanoseconds of CLOCK_MONOTONIC.
    fileprivate static var now: Nanoseconds {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    private func planRound() {
        loop.perform(named: "control turns") { [weak self] in self?.beginRound() }
    }

    private func beginRound() {
        let (next, plans) = state.withLock { state -> ([CheckedContinuation<Void, Never>], Bool) in
            let next = state.beginRound()
            return (next, state.users.isEmpty ? false : state.takePlan())
        }
        if plans { planRound() }
        for continuation in next { continuation.resume() }
    }
}
