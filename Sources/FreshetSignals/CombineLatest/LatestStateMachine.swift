/// The latest value of each of several branches.
protocol LatestRow: Sendable {
    /// What a branch delivers.
    associatedtype Value: Sendable
    /// The latest values of all branches.
    associatedtype Snapshot: Sendable

    /// Keeps the value instead of the one before it. O(1), but for a copy that somebody else still holds.
    mutating func set(_ value: Value, of branch: Int)
    /// All of them, once each branch has one. O(1).
    var snapshot: Snapshot? { get }
}

/// When the branches of a combination are read, and what is delivered.
///
/// Until each branch has delivered, all are read on and only their latest is kept. From then on there is one snapshot
/// for each element, and a branch waits until the one with its last element was taken.
///
/// Snapshots are made when they are taken, so that those that wait cost one value each, not one row.
struct LatestStateMachine<Row: LatestRow, Waiter> {
    /// What a branch does with an element that it has delivered.
    enum DeliverAction {
        /// Rest while it has to, then read on.
        case keep
        /// Offer a snapshot, and read on when it was taken.
        case offer
        /// The same, but rest first: the first snapshot, without this element, comes before it.
        case restAndOffer
    }

    /// A snapshot, and the branches that may be read on.
    struct TakeAction {
        let snapshot: Row.Snapshot
        let wake: [Waiter]
    }

    private enum Phase {
        /// A branch has not delivered yet.
        case gathering
        /// All have; the first snapshot was not taken.
        case complete
        /// The first snapshot was taken.
        case flowing
    }

    private var phase = Phase.gathering
    private var row: Row
    /// What was delivered and is not part of a snapshot yet; its branch waits.
    private var pending: [Row.Value?]
    /// Branches that do nothing until the first snapshot was taken.
    private var resting: [Int: Waiter] = [:]

    init(_ row: Row, branches: Int) {
        self.row = row
        pending = Array(repeating: nil, count: branches)
    }

    /// A branch delivered an element.
    mutating func deliver(_ value: Row.Value, by branch: Int) -> DeliverAction {
        switch phase {
        case .gathering:
            row.set(value, of: branch)
            guard row.snapshot != nil else { return .keep }
            phase = .complete
            return .offer
        case .complete:
            pending[branch] = value
            return .restAndOffer
        case .flowing:
            pending[branch] = value
            return .offer
        }
    }

    /// The consumer takes the snapshot that this branch offered.
    mutating func take(offeredBy branch: Int) -> TakeAction {
        if let value = pending[branch].take() {
            row.set(value, of: branch)
        }
        guard let snapshot = row.snapshot else {
            preconditionFailure("a snapshot was offered of a row that is not whole")  // safe: our own order of calls
        }
        var wake: [Waiter] = []
        if phase == .complete {
            phase = .flowing
            wake = Array(resting.values)
            resting = [:]
        }
        return TakeAction(snapshot: snapshot, wake: wake)
    }

    /// Whether a branch has to rest before it does anything more.
    var mustRest: Bool { phase == .complete }

    /// A branch falls asleep until the first snapshot was taken.
    ///
    /// - Returns: The waiter, if that is so already.
    mutating func rest(_ branch: Int, _ waiter: Waiter, isCancelled: Bool) -> Waiter? {
        guard mustRest, !isCancelled else { return waiter }
        resting[branch] = waiter
        return nil
    }

    /// A branch was cancelled.
    mutating func cancel(_ branch: Int) -> Waiter? {
        resting.removeValue(forKey: branch)
    }
}

extension LatestStateMachine: Sendable where Waiter: Sendable {}
