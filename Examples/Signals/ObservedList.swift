internal import FreshetSignals

/// A list that others observe: what there is, then each change as the difference to what they have.
public struct ObservedList: Sendable {
    /// What an observer is told.
    public enum Change: Sendable, Equatable {
        case snapshot([String])
        case difference(CollectionDifference<String>)
    }

    let items = CurrentValue<[String]>([])

    public init() {}

    /// Changes the list, in one step, from any thread.
    public func edit(_ change: (inout [String]) -> Void) {
        items.update(change)
    }

    /// The snapshot first, then one difference for each change.
    ///
    /// Each observer has its own differences: one that is slower than the changes gets what several of them come to.
    public var changes: some AsyncSequence<Change, Never> & Sendable {
        items
            .removeDuplicates()
            .scan((shown: [String]?.none, change: Change.snapshot([]))) { last, items in
                guard let shown = last.shown else { return (items, .snapshot(items)) }
                return (items, .difference(items.difference(from: shown)))
            }
            .map { $0.change }
    }
}

extension ObservedList.Change {
    /// What an observer has after this change.
    ///
    /// - Returns: Nil if the difference is not one to these items.
    public func applied(to items: [String]) -> [String]? {
        switch self {
        case .snapshot(let items): items
        case .difference(let difference): items.applying(difference)
        }
    }
}
