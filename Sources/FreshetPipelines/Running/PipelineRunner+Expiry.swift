internal import FreshetSignals

/// Copies whose content states when it expires.
extension PipelineRunner {
    /// A time of the wall clock, and the instant that it was when the machine was told of it.
    struct ReportedExpiry: Hashable, Sendable {
        /// Microseconds since 1970.
        var wall: Int64
        var instant: ContinuousClock.Instant

        /// The wall clock gets ahead of the engine's or falls back when it is set; reading both takes a moment.
        static let tolerance: Duration = .milliseconds(100)

        /// Times of further ahead than a thousand years are none.
        static let longest: Duration = .seconds(1_000 * 365 * 86_400)

        init?(_ wall: Int64, now: ContinuousClock.Instant, wallNow: Int64) {
            let span = StoredRefreshState.span(from: wallNow, to: wall)
            guard span < Self.longest else { return nil }
            self.wall = wall
            instant = now.advanced(by: max(span, .zero - Self.longest))
        }

        func isLike(_ other: Self) -> Bool {
            wall == other.wall && abs(instant.duration(to: other.instant)) < Self.tolerance
        }
    }

    /// When the content of the copy expires, if the machine does not know that yet, or by another wall clock.
    func expiryNews(_ state: inout State, _ now: ContinuousClock.Instant) -> [RefreshMachine.Event] {
        let stated = state.definition.check.findsExpiry ? state.generation?.contentExpires : nil
        let expiry = stated.flatMap { ReportedExpiry($0, now: now, wallNow: world.clock.wallNow) }
        switch (state.toldExpiry, expiry) {
        case (nil, nil): return []
        case (let told?, let expiry?) where told.isLike(expiry): return []
        default:
            state.toldExpiry = expiry
            return [.contentExpires(expiry?.instant)]
        }
    }
}

private func abs(_ duration: Duration) -> Duration { duration < .zero ? .zero - duration : duration }
