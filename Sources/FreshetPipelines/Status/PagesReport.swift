/// A set of pages that may be continued.
package struct PagesState: Hashable, Sendable {
    /// The keys that lead to its branch; none: it is the pipeline's own.
    package var path: [String]
    /// How many of its pages are in the copy.
    package var count: Int
    /// There is a next one.
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

/// Where in a pipeline a further page can be loaded.
package struct PagesReport: Hashable, Sendable {
    /// At how many places.
    package var total: Int
    /// The first of them, at most ``mostShown``.
    package var places: [PagesState]

    /// More is chosen from by nobody.
    package static let mostShown = 64

    /// Nil: nowhere.
    init?(_ pages: [PagesState]) {
        let more = pages.filter(\.hasMore)
        guard !more.isEmpty else { return nil }
        total = more.count
        places = Array(more.prefix(Self.mostShown))
    }
}
