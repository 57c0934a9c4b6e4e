package import FreshetModel

/// The state of the copy, besides the results of runs.
package struct CopyState: Hashable, Sendable {
    package var number: UInt64
    /// The copy is withdrawn: readers do not find it.
    package var isWithdrawn: Bool
    package var isPinned: Bool
    /// When its file was written; nil: not known.
    package var written: BootInstant?

    package init(
        number: UInt64, isWithdrawn: Bool = false, isPinned: Bool = false, written: BootInstant? = nil
    ) {
        self.number = number
        self.isWithdrawn = isWithdrawn
        self.isPinned = isPinned
        self.written = written
    }

    /// - Parameters: see ``StoredTimes/Copy/state(now:wallNow:)``.
    init(_ generation: CurrentGeneration, now: BootInstant, wallNow: WallTime) {
        self = StoredTimes.Copy(generation).state(now: now, wallNow: wallNow)
    }
}

/// The result of withdrawing the copy, or of publishing it again.
package enum CopyChangeResult: Hashable, Sendable {
    case done
    /// The copy was left as it is: a run is about to end, or the copy is pinned.
    case left
    case failed
}

/// Withdraws a copy that is too old for readers, and publishes it again.
///
/// Age, configuration and pin decide whether the copy is to be withdrawn; the store reports whether it is. If they
/// differ, one change at a time is requested.
struct Withdrawal: Hashable, Sendable {
    typealias Instant = BootInstant

    /// A change of what readers find.
    enum Change: Hashable, Sendable {
        case withdrawn
        case returned(isSame: Bool)
    }

    /// The pause between attempts.
    static let pause: Duration = .seconds(60)

    private(set) var copy: CopyState?
    /// The requested change whose result is not known yet: true to withdraw the copy, false to publish it again.
    private(set) var requested: Bool?
    /// The last attempt failed: readers still find the expired copy.
    private var hasFailed = false
    /// When a failed change is retried; the end of a run also retries it.
    private(set) var retry: Instant?
    /// When a partly failed run last made or confirmed the copy.
    private var made: Instant?

    init(copy: CopyState? = nil) { self.copy = copy }

    var isWithdrawn: Bool { copy?.isWithdrawn == true }

    /// When the copy is to be withdrawn, or since when; nil: never. Like the age, this counts from the last check; but
    /// a copy that the operator rolled back to or accepted, or that a partly failed run made, stays at least for
    /// `max-age`.
    ///
    /// - Parameter expires: when the copy exceeds its `max-age`.
    func due(expires: Instant, maxAge: Duration) -> Instant? {
        guard let copy, !copy.isPinned else { return nil }
        return [copy.written, made].compactMap { $0?.advanced(by: maxAge) }.reduce(expires, max)
    }

    /// Whether the copy is withdrawn, or will be in a moment, or a run is about to decide about it.
    func takesAway(isDue: Bool, isRunning: Bool) -> Bool {
        isWithdrawn || (isDue && !hasFailed && (retry == nil || isRunning))
    }

    /// The state of the copy has changed.
    mutating func copyChanged(_ new: CopyState?) -> Change? {
        let before = copy
        copy = new
        retry = nil
        guard let before, let new, before.isWithdrawn != new.isWithdrawn else { return nil }
        return new.isWithdrawn ? .withdrawn : .returned(isSame: before.number == new.number)
    }

    /// The copy is withdrawn and lost: it cannot be published again.
    mutating func copyLost() { copy?.isWithdrawn = true }

    /// A partly failed run has made or confirmed the copy.
    mutating func copyMade(at now: Instant) { made = now }

    /// A run has ended: a failed change is retried.
    mutating func runEnded() { retry = nil }

    /// The result of the requested change.
    mutating func settled(_ result: CopyChangeResult, _ now: Instant) {
        let isSo = result == .done && copy?.isWithdrawn == requested
        requested = nil
        hasFailed = result == .failed
        // Also after a success with another result, so that the request is not repeated endlessly.
        if !isSo { retry = now.advanced(by: Self.pause) }
    }

    /// The change that is to be requested now: true to withdraw the copy, false to publish it again; nil: none.
    mutating func request(isDue: Bool, _ now: Instant) -> Bool? {
        guard let copy, requested == nil else { return nil }
        guard isDue != copy.isWithdrawn else {
            (retry, hasFailed) = (nil, false)
            return nil
        }
        if let retry, now < retry { return nil }
        retry = nil
        requested = isDue
        return isDue
    }

    /// The wall clock was stepped: the write time is converted again.
    mutating func clockStepped(from old: CopyState?, to new: CopyState?) {
        guard let copy, copy.number == old?.number, copy.written == old?.written else { return }
        self.copy?.written = new?.written
    }
}
