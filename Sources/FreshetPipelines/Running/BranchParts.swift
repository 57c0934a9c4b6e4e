import FreshetModel
internal import FreshetSignals

/// The stored parts of a fan-out's branches, which are read before their branches ask for them: many at a time, so that
/// not every branch waits for another thread.
final class BranchParts: Sendable {
    /// The parts of one range of branches, in their order. It may end early, but has at least one.
    typealias Reading = @Sendable (_ branches: Range<Int>) async -> [StoredPart?]

    /// The most parts that are read together.
    static let readAhead = 128

    private let count: Int
    private let read: Reading
    private let state = Lock(State())

    private struct State {
        /// The parts that were read and that nobody has asked for yet.
        var ready: [Int: StoredPart?] = [:]
        /// The first branch whose part has not been read.
        var end = 0
        /// The branches that wait until the parts are read; nil: nobody is reading.
        var waiting: [CheckedContinuation<Void, Never>]?
    }

    private enum Step {
        case done(StoredPart?)
        case read(Range<Int>)
        case readAgain
        case wait
    }

    init(count: Int, _ read: @escaping Reading) {
        self.count = count
        self.read = read
    }

    /// The part of a branch; nil: there is none. The first call for a branch takes the part that was read before.
    func part(of branch: Int) async -> StoredPart? {
        while true {
            switch state.withLock({ next(&$0, for: branch) }) {
            case .done(let part): return part
            case .readAgain: return await read(branch..<(branch + 1)).first ?? nil
            case .wait: await next()
            case .read(let branches):
                let parts = await read(branches)
                let waiting = state.withLock { state in
                    for (branch, part) in zip(branches, parts) { state.ready[branch] = .some(part) }
                    state.end += max(1, parts.count)
                    defer { state.waiting = nil }
                    return state.waiting ?? []
                }
                for waiter in waiting { waiter.resume() }
            }
        }
    }

    private func next(_ state: inout State, for branch: Int) -> Step {
        if let part = state.ready.removeValue(forKey: branch) { return .done(part) }
        guard branch >= state.end else { return .readAgain }
        guard state.waiting == nil else { return .wait }
        state.waiting = []
        return .read(state.end..<min(count, state.end + Self.readAhead))
    }

    /// Waits until the parts are read that somebody is reading.
    private func next() async {
        await withCheckedContinuation { waiter in
            let isRead = state.withLock { state in
                state.waiting?.append(waiter)
                return state.waiting == nil
            }
            if isRead { waiter.resume() }
        }
    }
}
