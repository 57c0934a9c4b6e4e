import FreshetEventLoop
import Synchronization

/// Shares a loop among users: in each round of the loop the turn of one connection of each user begins, in the order in
/// which the connections came. So a user with many connections delays other users no more than one with a single connection
/// does.
final class TurnQueue: Sendable {
    private struct Waiting {
        var continuations: [CheckedContinuation<Void, Never>] = []
        /// Those before it have had their turn.
        var head = 0

        mutating func next() -> CheckedContinuation<Void, Never>? {
            guard head < continuations.count else { return nil }
            head += 1
            return continuations[head - 1]
        }
    }

    private struct State {
        var waiting: [UInt32: Waiting] = [:]
        /// The users of whom a turn has begun in this round.
        var begun: Set<UInt32> = []
        var isRoundPlanned = false

        /// Whether the caller has to plan the next round.
        mutating func takePlan() -> Bool {
            defer { isRoundPlanned = true }
            return !isRoundPlanned
        }
    }

    private let loop: EventLoop
    private let state = Mutex(State())

    init(_ loop: EventLoop) { self.loop = loop }

    /// Returns when a turn of this user may begin: at once, if no other one has begun in this round.
    func begin(_ user: UInt32) async {
        let (begins, plans) = state.withLock { state -> (Bool, Bool) in
            guard state.waiting[user] == nil, state.begun.insert(user).inserted else { return (false, false) }
            return (true, state.takePlan())
        }
        if plans { planRound() }
        if begins { return }
        await withCheckedContinuation { continuation in
            let plans = state.withLock { state in
                state.waiting[user, default: Waiting()].continuations.append(continuation)
                return state.takePlan()
            }
            if plans { planRound() }
        }
    }

    /// How many wait, for tests.
    var waitingCount: Int {
        state.withLock { $0.waiting.values.reduce(0) { $0 + $1.continuations.count - $1.head } }
    }

    private func planRound() {
        loop.perform(named: "control turns") { [weak self] in self?.beginRound() }
    }

    private func beginRound() {
        let (next, plans) = state.withLock { state -> ([CheckedContinuation<Void, Never>], Bool) in
            state.isRoundPlanned = false
            state.begun.removeAll(keepingCapacity: true)
            var next: [CheckedContinuation<Void, Never>] = []
            for user in Array(state.waiting.keys) {
                guard let continuation = state.waiting[user]?.next() else {
                    state.waiting[user] = nil
                    continue
                }
                next.append(continuation)
                state.begun.insert(user)
            }
            return (next, next.isEmpty ? false : state.takePlan())
        }
        if plans { planRound() }
        for continuation in next { continuation.resume() }
    }
}
