import FreshetModel

/// What the machine knows about the copy: other values lead to events.
struct CopyNotices: Sendable {
    /// The state of a copy.
    struct Copy: Hashable, Sendable {
        var number: UInt64?
        var isWithdrawn: Bool
        var isPinned: Bool
        var writtenAt: WallTime?

        init(_ generation: CurrentGeneration?) {
            number = generation?.number
            isWithdrawn = generation?.withdrawnSince != nil
            isPinned = generation?.pinnedSince != nil
            writtenAt = generation?.writtenAt
        }
    }

    /// An expiry by the wall clock, and the instant that the machine got for it.
    struct Expiry: Hashable, Sendable {
        var wall: WallTime
        var instant: BootInstant

        /// Smaller differences are ignored: the wall clock is adjusted, and both clocks are not read at the same
        /// moment.
        static let tolerance: Duration = .milliseconds(100)

        /// A time more than a thousand years ahead counts as no expiry.
        static let longest: Duration = .seconds(1_000 * 365 * 86_400)

        init?(_ wall: WallTime, now: BootInstant, wallNow: WallTime) {
            let span = wallNow.duration(to: wall)
            guard span < Self.longest else { return nil }
            self.wall = wall
            instant = now.advanced(by: max(span, .zero - Self.longest))
        }

        func isLike(_ other: Self) -> Bool {
            wall == other.wall && abs(instant.duration(to: other.instant)) < Self.tolerance
        }
    }

    /// Nil: the machine needs no state of the copy.
    @Boxed private var copy: Copy?
    /// When the content expires by its own statement; nil: it states nothing.
    @Boxed private(set) var expiry: Expiry?
    /// The machine has to get ``RefreshEvent/copyLost`` before the state of another copy.
    private var isLost = false

    /// - Parameter needsCopy: whether the machine knows the state of the copy from the start.
    init(_ generation: CurrentGeneration?, needsCopy: Bool) {
        if needsCopy { copy = Copy(generation) }
    }

    /// Whether the machine knows anything about the copy.
    var isEmpty: Bool { copy == nil && expiry == nil }

    /// Whether a change to this generation has to be reported.
    func concerns(_ generation: CurrentGeneration?) -> Bool {
        copy != nil || expiry?.wall != generation?.contentExpires
    }

    /// The withdrawn copy was damaged and is lost.
    mutating func lose() { isLost = true }

    /// The events with what the machine does not know yet.
    ///
    /// - Parameters:
    ///   - withdraws: an expired copy is withdrawn from readers.
    ///   - findsExpiry: the content may state when it expires.
    ///   - wallNow: the same moment as `now` by the wall clock.
    mutating func events(
        about generation: CurrentGeneration?, withdraws: Bool, findsExpiry: Bool, now: BootInstant,
        wallNow: () -> WallTime
    ) -> [RefreshEvent] {
        var events: [RefreshEvent] = []
        if withdraws || copy != nil || generation?.withdrawnSince != nil {
            if isLost {
                (isLost, copy) = (false, Copy(nil))
                events.append(.copyLost)
            }
            let new = Copy(generation)
            if new != copy {
                copy = new
                events.append(.copy(generation.map { CopyState($0, now: now, wallNow: wallNow()) }))
            }
        }
        let stated = findsExpiry ? generation?.contentExpires : nil
        let expiry = stated.flatMap { Expiry($0, now: now, wallNow: wallNow()) }
        switch (self.expiry, expiry) {
        case (nil, nil): break
        case (let known?, let expiry?) where known.isLike(expiry): break
        default:
            self.expiry = expiry
            events.append(.contentExpires(expiry?.instant))
        }
        return events
    }
}

private func abs(_ duration: Duration) -> Duration { duration < .zero ? .zero - duration : duration }
