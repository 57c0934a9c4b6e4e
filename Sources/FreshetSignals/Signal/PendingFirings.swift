/// What a subscription remembers of firings that nobody has taken yet, and what one `next()` takes of it.
///
/// Firings carry no value, so no tally is a queue: its memory is bounded by the number of sources.
protocol PendingFirings: Sendable {
    associatedtype Output: Sendable

    /// Whether it keeps occurrences. Without it, a firing is all that counts.
    static var readsOccurrences: Bool { get }

    /// - Parameter listings: For each source how often it was listed in the merge. The index is the source's.
    init(listings: [Int])

    var isEmpty: Bool { get }

    mutating func record(_ occurrence: Occurrence?, source: Int)
    /// Takes what one `next()` delivers, or nil if nothing is there.
    mutating func take() -> Output?
    /// Forgets everything.
    mutating func clear()
}

/// Each firing by itself, a source that is listed twice twice: the view of ``Signal`` itself.
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

/// All firings as one: the view of ``Signal/coalesced()``.
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

/// All firings, each source once, in the order of their first firing: the view of ``Signal/causes``.
struct PendingCauses: PendingFirings {
    static var readsOccurrences: Bool { true }

    /// The causes so far, in the order of their first firing.
    private var causes: [Cause] = []
    /// For each source where in `causes` it is, or nil if it has not fired.
    private var places: [Int?]

    init(listings: [Int]) {
        places = Array(repeating: nil, count: listings.count)
    }

    var isEmpty: Bool { causes.isEmpty }

    mutating func record(_ occurrence: Occurrence?, source: Int) {
        guard let occurrence else {
            preconditionFailure("a firing without its occurrence")  // safe: the source asks what its listeners read
        }
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
        for source in places.indices {
            places[source] = nil
        }
    }
}
