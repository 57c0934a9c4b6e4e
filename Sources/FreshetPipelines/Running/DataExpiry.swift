/// When data stops being fresh by its origin's word: by the engine's clock, and by the wall clock for what is remembered.
struct DataExpiry: Hashable, Sendable {
    /// An origin's word is heeded for so long at most: a mistake of a year, such as that of a file that never changes,
    /// shall not keep signals from being heard for a year.
    static let longest: Duration = .seconds(7 * 24 * 3600)

    let instant: ContinuousClock.Instant
    /// Microseconds since 1970.
    let wall: Int64

    /// - Parameter remaining: how much longer it is fresh from now on; below zero counts as zero.
    init(in remaining: Duration, _ clock: any EngineClock) {
        let left = min(max(remaining, .zero), Self.longest)
        instant = clock.now.advanced(by: left)
        wall = clock.wallNow + left.microseconds
    }
}
