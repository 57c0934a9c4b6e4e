import FreshetModel
internal import FreshetSignals

/// The pages of sets whose load was interrupted, kept in memory for the pipeline's next run, from any thread.
final class InterruptedSets: Sendable {
    typealias Instant = BootInstant

    /// The pages before the one that failed.
    struct InterruptedSet: Sendable {
        /// The first page, by which the next run recognises the set.
        var first: FirstPage
        /// The page that failed.
        var position: PageMachine.Position
        /// The items so far, as a JSON array without its end.
        var items: [UInt8]
        /// The number of pages.
        var count: Int
        /// When the load of the first of these pages began.
        var begun: Instant
        /// When the first page was last confirmed.
        var confirmed: Instant

        fileprivate var size: Int { items.count + first.items.count }
    }

    /// Everything of the first page that decides about the set.
    struct FirstPage: Hashable, Sendable {
        /// The items as the inner part of a JSON array.
        var items: [UInt8]
        var facts: PageMachine.Facts
        var validators: Validators
    }

    /// How long pages are kept after the run that failed: an origin may change them meanwhile without changing the first
    /// page.
    static let longest: Duration = .seconds(3600)
    /// The greatest age of a page, if each of many runs fails and goes on: a set that needs longer would mix too old
    /// pages with new ones.
    static let oldest: Duration = .seconds(24 * 3600)
    /// The most bytes of items of all sets of a pipeline: they are in memory while the pipeline waits.
    static let mostBytes = 8 << 20
    /// The most sets of a pipeline, such as those of branches.
    static let mostSets = 64

    private let sets = Lock<[String: InterruptedSet]>([:])

    init() {}

    /// Takes the pages of a set; nil: there are none, or they are too old.
    ///
    /// - Parameter key: the place of the set, and a hash of its request and its programs.
    func take(_ key: String, at now: Instant) -> InterruptedSet? {
        sets.withLock { sets in
            Self.forgetOld(&sets, at: now)
            return sets.removeValue(forKey: key)
        }
    }

    /// Keeps the pages of a set. If there are too many, the oldest sets are forgotten.
    func keep(_ set: InterruptedSet, as key: String, at now: Instant) {
        sets.withLock { sets in
            sets[key] = set
            Self.forgetOld(&sets, at: now)
            while sets.count > Self.mostSets || sets.values.reduce(0, { $0 + $1.size }) > Self.mostBytes,
                let oldest = sets.min(by: { $0.value.confirmed < $1.value.confirmed })?.key
            {
                sets[oldest] = nil
            }
        }
    }

    /// Forgets all pages: the next run begins with the first ones.
    func removeAll() { sets.withLock { $0 = [:] } }

    private static func forgetOld(_ sets: inout [String: InterruptedSet], at now: Instant) {
        sets = sets.filter {
            now < $0.value.confirmed.advanced(by: longest) && now < $0.value.begun.advanced(by: oldest)
        }
    }
}

extension FetchError {
    /// Whether a set of pages may go on later at the page that failed in this way: the failure says nothing about the
    /// content.
    var leavesPages: Bool {
        guard case .failed(let failure) = self else { return true }
        switch failure.kind {
        case .connection, .transient, .certificateDate, .budget, .deadline: return true
        case .refused, .content, .local, .absent: return false
        }
    }
}
