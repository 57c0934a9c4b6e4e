/// The firings that a subscriber has not taken yet, and the output that one `next()` takes.
///
/// Firings carry no value, so this is never a queue: its memory is bounded by the number of sources.
protocol PendingFirings: Sendable {
    associatedtype Output: Sendable

    /// Whether the implementation needs occurrences; otherwise only the fact of a firing counts.
    static var readsOccurrences: Bool { get }

    /// - Parameter listings: For each source how often the merge lists it. The index is the source's.
    init(listings: [Int])

    var isEmpty: Bool { get }

    mutating func record(_ occurrence: Occurrence?, source: Int)
    /// Takes the output for one `next()`, or returns nil if there is none.
    mutating func take() -> Output?
    /// Removes all firings.
    mutating func clear()
}

/// Counts each firing; a source that is listed twice counts twice. This is the view of ``Signal`` itself.
struct PendingFiringCount: PendingFirings {
    static var readsOccurrences: Bool { false }

    private let listings: [Int]
    private var count = 0

    init(listings: [Int]) {
        self.listings = listings
    }

    var isEmpty: Bool { count == 0 }

    mutating func record(_ occurrence: Occurrence?, source: Int) {
        count += listings[source]
    }

    mutating func take() -> Void? {
        guard count > 0 else { return nil }
        count -= 1
        return ()
    }

    mutating func clear() {
        count = 0
    }
}

/// All pending firings as one: the view of ``Signal/coalesced()``.
struct CoalescedFirings: PendingFirings {
    static var readsOccurrences: Bool { false }

    private(set) var isEmpty = true

    init(listings: [Int]) {}

    mutating func record(_ occurrence: Occurrence?, source: Int) {
        isEmpty = false
    }

    mutating func take() -> Void? {
        guard !isEmpty else { return nil }
        isEmpty = true
        return ()
    }

    mutating func clear() {
        isEmpty = true
    }
}

/// All pending firings, one cause for each source, in the order of their first firing: the view of ``Signal/causes``.
struct PendingCauses: PendingFirings {
    static var readsOccurrences: Bool { true }

    /// The causes so far, in the order of their first firing.
    private var causes: [Cause] = []
    /// For each source its index in `causes`, or nil if it has not fired. Empty while no source has fired: thousands of
    /// idle subscriptions would keep it.
    private var places: [Int?] = []
    private let sourceCount: Int

    init(listings: [Int]) { sourceCount = listings.count }

    var isEmpty: Bool { causes.isEmpty }

    mutating func record(_ occurrence: Occurrence?, source: Int) {
        guard let occurrence else {
            preconditionFailure("a firing without its occurrence")  // safe: the source checks readsOccurrences
        }
        if places.isEmpty { places = Array(repeating: nil, count: sourceCount) }
        if let place = places[source] {
            causes[place].last = occurrence
            causes[place].count += 1
        } else {
            places[source] = causes.count
            causes.append(Cause(first: occurrence))
        }
    }

    mutating func take() -> [Cause]? {
        guard !causes.isEmpty else { return nil }
        let taken = causes
        clear()
        return taken
    }

    mutating func clear() {
        guard !causes.isEmpty else { return }
        causes = []
        places = []
    }
}
