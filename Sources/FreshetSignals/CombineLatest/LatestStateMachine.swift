/// The latest value of each of several branches.
protocol LatestRow: Sendable {
    /// The value that a branch delivers.
    associatedtype Value: Sendable
    /// The latest values of all branches.
    associatedtype Snapshot: Sendable

    /// Replaces the branch's value. O(1), unless the row has to be copied because somebody else still holds a copy.
    mutating func set(_ value: Value, of branch: Int)
    /// The latest values of all branches, or nil until each branch has one. O(1).
    var snapshot: Snapshot? { get }
}

/// Decides when the branches of a combination are read and which snapshot is delivered.
///
/// Until each branch has delivered an element, all branches are read continuously and only their latest values are
/// kept. After that there is one snapshot for each element, and a branch waits until the consumer has taken the
/// snapshot with its last element.
///
/// A snapshot is made when it is taken. A waiting element therefore costs one value, not a whole row.
struct LatestStateMachine<Row: LatestRow, Waiter> {
    /// What a branch does with an element that it has delivered.
    enum DeliverAction {
        /// Rest if the machine requires it, then read on.
        case keep
        /// Offer a snapshot, and read on when the consumer has taken it.
        case offer
        /// Rest first, then offer a snapshot: the first snapshot, without this element, comes before it.
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
        /// All branches have delivered; the consumer has not taken the first snapshot yet.
        case complete
        /// The consumer has taken the first snapshot.
        case flowing
    }

    private var phase = Phase.gathering
    private var row: Row
    /// Delivered values that are not part of a snapshot yet; their branches wait.
    private var pending: [Row.Value?]
    /// Branches that wait until the consumer has taken the first snapshot.
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

    /// Whether a branch has to rest before it continues.
    var mustRest: Bool { phase == .complete }

    /// Suspends a branch until the consumer has taken the first snapshot.
    ///
    /// - Returns: The waiter, if the branch need not rest (any more).
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
