internal import FreshetSignals

/// A list with observers. An observer gets a snapshot first, then each change as a difference.
public struct ObservedList: Sendable {
    /// An element for an observer.
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
    /// Each observer gets its own differences. If an observer is slower than the changes, several changes become one
    /// difference.
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
    /// The items of an observer after this change.
    ///
    /// - Returns: Nil if the difference does not fit these items.
    public func applied(to items: [String]) -> [String]? {
        switch self {
        case .snapshot(let items): items
        case .difference(let difference): items.applying(difference)
        }
    }
}
