import FreshetEventLoop
import Synchronization

/// Shares a loop among users: in each round of the loop each user has one share of processor time, for turns of that user's
/// connections in the order in which they came. So a user with many connections delays other users no more than one with a
/// single connection does.
final class FairScheduler: Sendable {
    /// A turn that has begun.
    struct Turn {
        fileprivate let user: UInt32
        fileprivate let ticket: Ticket
        fileprivate let share: Duration
        private let began = ProcessorTime.used

        fileprivate init(_ user: UInt32, _ ticket: Ticket, _ share: Duration) {
            self.user = user
            self.ticket = ticket
            self.share = share
        }

        /// The time that other tasks use while a call waits counts too: a turn that ends early costs one trip through the
        /// loop's queue and nothing else.
        fileprivate var used: Duration { ProcessorTime.used - began }
        var isOver: Bool { used > share }
    }

    fileprivate typealias Ticket = UInt64

    /// The connections of one user that wait, in the order in which they came.
    private struct Line {
        private var tickets: [Ticket] = []
        /// Those before it have left.
        private var head = 0

        var isEmpty: Bool { head == tickets.count }

        mutating func append(_ ticket: Ticket) {
            // Under a load without a pause the line never is empty.
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
        var lines: [UInt32: Line] = [:]
        /// Those that wait, until their turn begins or their task is cancelled; nil: the task does not wait yet.
        var waiting: [Ticket: CheckedContinuation<Void, Never>?] = [:]
        /// What the users have used in this round.
        var spent: [UInt32: Duration] = [:]
        /// The turns that have begun in this round and have not ended.
        var active: [UInt32: Ticket] = [:]
        var lastTicket: Ticket = 0
        var isRoundPlanned = false

        /// Whether the caller has to plan the next round.
        mutating func takePlan() -> Bool {
            defer { isRoundPlanned = true }
            return !isRoundPlanned
        }

        /// Whether the turn begins at once.
        mutating func enter(_ user: UInt32) -> (Ticket, begins: Bool) {
            lastTicket += 1
            guard lines[user] == nil, mayBegin(user) else {
                lines[user, default: Line()].append(lastTicket)
                waiting[lastTicket] = .some(nil)
                return (lastTicket, false)
            }
            active[user] = lastTicket
            return (lastTicket, true)
        }

        /// Begins the turn of the next connection of a user.
        mutating func beginNext(of user: UInt32) -> CheckedContinuation<Void, Never>? {
            guard mayBegin(user) else { return nil }
            defer { if lines[user]?.isEmpty == true { lines[user] = nil } }
            while let ticket = lines[user]?.next() {
                guard let place = waiting.removeValue(forKey: ticket) else { continue }
                active[user] = ticket
                return place
            }
            return nil
        }

        private func mayBegin(_ user: UInt32) -> Bool {
            active[user] == nil && spent[user, default: .zero] < share
        }
    }

    private let loop: EventLoop
    /// The processor time of a user in one round, and of a turn: a client that sends without a pause then waits until all
    /// others had a turn.
    private let share: Duration
    private let state: Mutex<State>

    init(_ loop: EventLoop, share: Duration = .microseconds(200)) {
        self.loop = loop
        self.share = share
        state = Mutex(State(share: share))
    }

    /// Returns when a turn of this user has begun: at once, if none is under way and the user has time left in this round.
    /// If the task is cancelled it returns at once too.
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
            let place = state.withLock { $0.waiting.removeValue(forKey: ticket) }
            if let continuation = place ?? nil { continuation.resume() }
        }
        return Turn(user, ticket, share)
    }

    /// Ends a turn before its time is over: the next connection of the user has the rest.
    func end(_ turn: Turn) {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.active[turn.user] == turn.ticket else { return nil }
            state.active[turn.user] = nil
            state.spent[turn.user, default: .zero] += turn.used
            return state.beginNext(of: turn.user)
        }
        next?.resume()
    }

    /// How many wait, for tests.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    private func planRound() {
        loop.perform(named: "control turns") { [weak self] in self?.beginRound() }
    }

    private func beginRound() {
        let (next, plans) = state.withLock { state -> ([CheckedContinuation<Void, Never>], Bool) in
            state.isRoundPlanned = false
            state.spent.removeAll(keepingCapacity: true)
            state.active.removeAll(keepingCapacity: true)
            let users = Array(state.lines.keys)
            return (users.compactMap { state.beginNext(of: $0) }, users.isEmpty ? false : state.takePlan())
        }
        if plans { planRound() }
        for continuation in next { continuation.resume() }
    }
}

extension Dictionary {
    /// Replaces the value of a key; false: there is none.
    fileprivate mutating func updateIfPresent(_ value: Value, forKey key: Key) -> Bool {
        guard let index = index(forKey: key) else { return false }
        values[index] = value
        return true
    }
}
