package import FreshetModel

/// The calendar times of a pipeline on the clock of the engine: its events with their time zones, and the difference
/// of the wall clock to boot time.
///
/// It is made again when the wall clock is stepped or the time zone changes. Slewing (adjtime(3)) moves both clocks.
package struct CalendarPlan: Hashable, Sendable {
    private struct Times: Hashable, Sendable {
        var event: CalendarEvent
        var zone: TimeZoneRules
    }

    private var times: [Times]
    /// The same moment on both clocks.
    private var instant: BootInstant
    private var wall: WallTime

    /// - Parameters:
    ///   - zone: the rules of a time zone; its argument is nil for the local one.
    ///   - instant: an instant of boot time.
    ///   - wall: the same instant on the wall clock.
    package init?(
        _ events: [CalendarEvent], zone: (String?) -> TimeZoneRules, at instant: BootInstant, wall: WallTime
    ) {
        guard !events.isEmpty else { return nil }
        times = events.map { Times(event: $0, zone: zone($0.zone)) }
        self.instant = instant
        self.wall = wall
    }

    init?(_ events: [CalendarEvent], _ clock: any EngineClock) {
        self.init(events, zone: clock.zone(named:), at: clock.now, wall: clock.wallNow)
    }

    /// The first time after an instant; nil: there is none.
    package func next(after start: BootInstant) -> BootInstant? {
        let wallStart = wall.advanced(by: instant.duration(to: start))
        return times.compactMap { $0.event.next(after: wallStart, in: $0.zone) }.min().map {
            // The wall clock has microseconds, so the result of the conversion may be a little too early.
            max(instant.advanced(by: wall.duration(to: $0)), start)
        }
    }
}
