/// The labelled ticks of a time axis: round instants, with enough distance for their labels.
package struct TimeAxis: Hashable, Sendable {
    package struct Tick: Hashable, Sendable {
        /// Microseconds since 1970.
        package var at: Int64
        /// Such as `14:05`, `14:05:30`, `14:05:30.250`, or `Nov 21` at midnight.
        package var label: String
    }

    package var ticks: [Tick]
    /// The distance between two ticks, in microseconds.
    package var step: Int64

    /// Round lengths, in microseconds.
    package static let steps: [Int64] =
        [1, 2, 5, 10, 20, 50, 100, 200, 500].map { $0 * 1_000 }
        + [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200].map {
            $0 * 1_000_000
        }
        + [1, 2, 7, 14, 28, 56, 182, 364, 1_820, 3_640, 36_400].map { $0 * 86_400_000_000 }

    /// Rounds an instant down, to a length that suits a picture of the time until `last`.
    ///
    /// - Parameter offset: seconds east of UTC at an instant.
    package static func round(_ instant: Int64, before last: Int64, offset: (Int64) -> Int64) -> Int64 {
        // At most about a tenth of the picture.
        let step = steps.first { $0 >= max(1, last - instant) / 10 } ?? 1
        let local = instant + offset(instant) * 1_000_000
        return instant - ((local % step) + step) % step
    }

    /// - Parameters:
    ///   - most: the number of labels that fit.
    ///   - offset: seconds east of UTC at an instant.
    package init(from first: Int64, to last: Int64, most: Int, offset: (Int64) -> Int64) {
        let (difference, overflow) = last.subtractingReportingOverflow(first)
        let span = overflow ? Int64.max : max(1, difference)
        let needed = span / Int64(max(1, most))
        step = Self.steps.first { $0 >= needed } ?? max(needed, Self.steps.last ?? 1)
        ticks = []
        // Ticks are round in local time; the offset can differ at the next tick.
        var instant = Self.rounded(first, step: step, since: first, offset: offset)
        while instant <= last, ticks.count <= max(1, most) {
            ticks.append(Tick(at: instant, label: TimeText.tick(instant, step: step, offset: offset(instant))))
            let (next, overflow) = instant.addingReportingOverflow(step)
            guard !overflow else { break }
            instant = Self.rounded(next, step: step, since: instant &+ (step + 1) / 2, offset: offset)
        }
    }

    /// A round instant nearby: the last one before the instant, else the next one.
    ///
    /// - Parameter least: the earliest result.
    private static func rounded(_ instant: Int64, step: Int64, since least: Int64, offset: (Int64) -> Int64) -> Int64 {
        let shift = offset(instant)
        let local = instant &+ shift &* 1_000_000
        let rest = ((local % step) + step) % step
        let before = instant &- rest
        // Not across a change of the offset: the result would not be round.
        if before >= least, offset(before) == shift { return before }
        guard rest != 0 else { return instant }
        let after = before &+ step
        let change = (offset(after) &- shift) &* 1_000_000
        if change % step == 0 { return after }
        let round = after &- change
        // The change of the clocks may have skipped that time of day.
        let next = offset(round) == offset(after) ? round : round &+ step
        return next >= instant ? next : next &+ step
    }
}
