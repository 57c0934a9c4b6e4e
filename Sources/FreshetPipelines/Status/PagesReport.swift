/// A set of pages that may be continued.
package struct PagesState: Hashable, Sendable {
    /// The keys on the path to its branch; empty: the set is the pipeline's own.
    package var path: [String]
    /// The number of its pages in the copy.
    package var count: Int
    /// Whether there is a next page.
    package var hasMore: Bool

    package init(path: [String], count: Int, hasMore: Bool) {
        self.path = path
        self.count = count
        self.hasMore = hasMore
    }
}

extension PagesState: Comparable {
    package static func < (one: Self, other: Self) -> Bool { one.path.lexicographicallyPrecedes(other.path) }
}

/// The places of a pipeline at which a further page can be loaded.
package struct PagesReport: Hashable, Sendable {
    /// The number of places.
    package var total: Int
    /// The first places, at most ``mostShown``.
    package var places: [PagesState]

    /// The most places in a report.
    package static let mostShown = 64

    /// Nil: no further page can be loaded.
    init?(_ pages: [PagesState]) {
        let more = pages.filter(\.hasMore)
        guard !more.isEmpty else { return nil }
        total = more.count
        places = Array(more.prefix(Self.mostShown))
    }
}
