import FreshetModel
internal import FreshetSignals

/// Copies whose content states when it expires.
extension PipelineRunner {
    /// An expiry by the wall clock, and the instant that the machine got for it.
    struct ReportedExpiry: Hashable, Sendable {
        var wall: WallTime
        var instant: ContinuousClock.Instant

        /// Smaller differences are ignored: the wall clock is adjusted, and both clocks are not read at the same
        /// moment.
        static let tolerance: Duration = .milliseconds(100)

        /// A time more than a thousand years ahead counts as no expiry.
        static let longest: Duration = .seconds(1_000 * 365 * 86_400)

        init?(_ wall: WallTime, now: ContinuousClock.Instant, wallNow: WallTime) {
            let span = wallNow.duration(to: wall)
            guard span < Self.longest else { return nil }
            self.wall = wall
            instant = now.advanced(by: max(span, .zero - Self.longest))
        }

        func isLike(_ other: Self) -> Bool {
            wall == other.wall && abs(instant.duration(to: other.instant)) < Self.tolerance
        }
    }

    /// The event with the expiry of the copy's content, if the machine does not know it yet or the wall clock has
    /// changed.
    func expiryEvents(_ state: inout State, _ now: ContinuousClock.Instant) -> [RefreshMachine.Event] {
        let stated = state.definition.check.findsExpiry ? state.generation?.contentExpires : nil
        let expiry = stated.flatMap { ReportedExpiry($0, now: now, wallNow: world.clock.wallNow) }
        switch (state.notifiedExpiry, expiry) {
        case (nil, nil): return []
        case (let known?, let expiry?) where known.isLike(expiry): return []
        default:
            state.notifiedExpiry = expiry
            return [.contentExpires(expiry?.instant)]
        }
    }
}

private func abs(_ duration: Duration) -> Duration { duration < .zero ? .zero - duration : duration }
