import FreshetModel

/// When data stops being fresh, as its origin states: by the engine's clock, and by the wall clock for the stored
/// state.
struct DataExpiry: Hashable, Sendable {
    /// The longest freshness that is honoured: a mistake of a year, such as for a file that never changes, must not
    /// suppress signals for a year.
    static let longest: Duration = .seconds(7 * 24 * 3600)

    let instant: BootInstant
    let wall: WallTime

    /// - Parameter remaining: the remaining time from now on; a negative time counts as zero.
    init(in remaining: Duration, _ clock: any EngineClock) {
        let left = min(max(remaining, .zero), Self.longest)
        instant = clock.now.advanced(by: left)
        wall = clock.wallNow.advanced(by: left)
    }
}
