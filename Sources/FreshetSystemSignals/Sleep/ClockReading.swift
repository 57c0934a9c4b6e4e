import CSystemd  // timespec: a whole-module build takes it for this module's
import Glibc

/// One reading of three clocks, with its uncertainty: the clocks are read one after the other, and between two reads
/// the process may be preempted for any time, or the machine may sleep. So each difference is a range that contains the
/// true value.
struct ClockReading: Hashable, Sendable {
    /// CLOCK_BOOTTIME − CLOCK_MONOTONIC: how long the machine has slept since boot. The two clocks differ by nothing
    /// else (clock_gettime(2)).
    var slept: ClosedRange<Duration>
    /// CLOCK_REALTIME − CLOCK_BOOTTIME. It changes when the wall clock is set or slewed, and not by sleep.
    var wall: ClosedRange<Duration>

    /// Makes a reading from five reads in this order. A range is as wide as the time that its reads took.
    init(
        monotonic before: Duration, boot earlier: Duration, realtime: Duration, boot later: Duration,
        monotonic after: Duration
    ) {
        // The clocks do not run backwards; `max` keeps rounding in the kernel from making an invalid range.
        slept = (earlier - after)...max(later - before, earlier - after)
        wall = (realtime - later)...max(realtime - earlier, realtime - later)
    }

    /// Reads the clocks.
    static func now() -> ClockReading {
        let before = read(CLOCK_MONOTONIC)
        let earlier = read(CLOCK_BOOTTIME)
        let realtime = read(CLOCK_REALTIME)
        let later = read(CLOCK_BOOTTIME)
        return ClockReading(
            monotonic: before, boot: earlier, realtime: realtime, boot: later, monotonic: read(CLOCK_MONOTONIC))
    }

    private static func read(_ clock: clockid_t) -> Duration {
        var time = timespec()
        clock_gettime(clock, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

extension ClosedRange<Duration> {
    /// The minimum distance by which this range lies above the other, or (negative) below it; zero if they overlap.
    func distance(from other: ClosedRange<Duration>) -> Duration {
        if lowerBound > other.upperBound { return lowerBound - other.upperBound }
        if upperBound < other.lowerBound { return upperBound - other.lowerBound }
        return .zero
    }
}
