/// Recurring times in the notation of systemd.time(7), CALENDAR EVENTS: `daily`, `Mon..Fri 06:30`, `*-*~1 00:00 UTC`.
package struct CalendarEvent: Hashable, Sendable {
    /// Values that a field of a date or time may have.
    struct Component: Hashable, Sendable {
        /// For the day of a month that counts from its end, 1 is the last day.
        var start: Int
        /// The last value; nil: there is only `start`, with its repetitions.
        var stop: Int?
        /// The distance of the further values; 0: there are none.
        var interval: Int
    }

    /// The text as it was written.
    package let text: String
    /// The name of the time zone; nil: the local time zone.
    package internal(set) var zone: String?
    /// A bit for each weekday, the lowest for Monday; nil: every day.
    var weekdays: UInt8?
    /// Nil: every value. The same holds for the other fields.
    var years: [Component]?
    var months: [Component]?
    var days: [Component]?
    /// Whether `days` counts from the end of the month.
    var countsFromEnd = false
    var hours: [Component]?
    var minutes: [Component]?
    /// In microseconds.
    var microseconds: [Component]?

    /// Whether some times are not at whole seconds.
    package var hasFractions: Bool {
        microseconds?.contains {
            $0.start % 1_000_000 != 0 || $0.interval % 1_000_000 != 0
        } ?? false
    }

    /// Two events are equal if they have the same text.
    package static func == (one: Self, other: Self) -> Bool { one.text == other.text }
    package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

// MARK: The next time

extension CalendarEvent {
    /// After this many steps without a time, there is none: as systemd does.
    private static let maximumSteps = 1000
    private static let lastYear = 2199

    /// The first time after an instant; nil: there is none until the year 2199.
    ///
    /// A local time that daylight saving skips does not count; one that occurs twice counts once, the first time.
    package func next(after instant: WallTime, in zone: TimeZoneRules) -> WallTime? {
        let (start, overflow) = instant.microseconds.addingReportingOverflow(1)
        guard !overflow else { return nil }
        var seconds = start / 1_000_000
        if start % 1_000_000 < 0 { seconds -= 1 }
        var time = zone.local(at: seconds)
        time.microsecond = Int(start - seconds * 1_000_000)
        guard let found = next(from: time, at: seconds, in: zone) else { return nil }
        let result = zone.instant(of: found, after: seconds - 1)
        let (whole, isBeyond) = result.multipliedReportingOverflow(by: 1_000_000)
        return isBeyond ? nil : WallTime(microseconds: whole + Int64(found.microsecond))
    }

    /// The first local time from `start` on that agrees with all fields: from the year to the second, each field takes
    /// its next value, and the smaller fields begin again.
    ///
    /// - Parameter instant: the instant of `start`.
    private func next(from start: CivilTime, at instant: Int64, in zone: TimeZoneRules) -> CivilTime? {
        var time = start
        for _ in 0..<Self.maximumSteps {
            switch step(&time, in: zone) {
            case .found: return time
            case .none: return nil
            case .again: continue
            }
        }
        return nil
    }

    private enum Step {
        case found, again
        case none
    }

    private func step(_ time: inout CivilTime, in zone: TimeZoneRules) -> Step {
        normalize(&time, in: zone)
        switch Self.advance(&time.year, to: years) {
        case nil: return .none
        case true?: time.clear(below: .year)
        case false?: break
        }
        guard time.year <= Self.lastYear else { return .none }
        for field in [CivilTime.Field.month, .day] {
            let components = field == .month ? months : days(of: time)
            if let again = Self.advance(field, of: &time, to: components, in: zone) { return again }
        }
        if let weekdays {
            let day = CivilTime.weekday(ofDay: CivilTime.days(year: time.year, month: time.month, day: time.day))
            if weekdays & (1 << UInt8(day)) == 0 {
                time.day += 1
                time.clear(below: .day)
                return .again
            }
        }
        for (field, components) in [(CivilTime.Field.hour, hours), (.minute, minutes), (.microsecond, microseconds)] {
            if let again = Self.advance(field, of: &time, to: components, in: zone) { return again }
        }
        return .found
    }

    /// Gives a field its next value. Returns nil if the time is then valid, so that the next field can be decided.
    private static func advance(
        _ field: CivilTime.Field, of time: inout CivilTime, to components: [Component]?, in zone: TimeZoneRules
    ) -> Step? {
        var value = time[field]
        let isChanged = advance(&value, to: components)
        if isChanged == true {
            time[field] = value
            time.clear(below: field)
        }
        switch isChanged == nil ? .backward : bounds(&time, in: zone) {
        case .valid: return nil
        case .moved: return .again
        case .backward:
            // The next value of the larger field, from its beginning.
            guard let larger = field.larger else { return Step.none }
            time[larger] += 1
            time.clear(below: larger)
            return .again
        }
    }

    /// Sets a value to the next one of the components. Returns whether it changed; nil if there is no further value.
    private static func advance(_ value: inout Int, to components: [Component]?) -> Bool? {
        guard let components else { return false }
        var best: Int?
        for component in components {
            var candidate: Int?
            if component.start >= value {
                candidate = component.start
            } else if component.interval > 0 {
                let steps = (value - component.start + component.interval - 1) / component.interval
                let repeated = component.start + steps * component.interval
                if component.stop.map({ repeated <= $0 }) ?? true { candidate = repeated }
            }
            if let candidate { best = min(best ?? candidate, candidate) }
        }
        guard let best else { return nil }
        defer { value = best }
        return best != value
    }

    /// The days of a month that may match, counted from its beginning.
    private func days(of time: CivilTime) -> [Component]? {
        guard countsFromEnd, let days else { return days }
        let length = CivilTime.length(ofMonth: time.month, year: time.year)
        return days.map { component in
            let start = length + 1 - component.start
            guard let stop = component.stop else {
                return Component(start: start, stop: nil, interval: component.interval)
            }
            return Component(start: length + 1 - stop, stop: start, interval: component.interval)
        }
    }

    private enum Bounds {
        case valid
        /// The time does not exist; it is now the beginning of the next unit that exists.
        case moved
        /// The time does not exist, and the one that replaces it is earlier.
        case backward
    }

    private static func bounds(_ time: inout CivilTime, in zone: TimeZoneRules) -> Bounds {
        var normal = time
        normalize(&normal, in: zone)
        for field in CivilTime.Field.allCases where normal[field] != time[field] {
            guard normal[field] > time[field] else { return .backward }
            // The smaller fields would skip values.
            normal.clear(below: field)
            time = normal
            return .moved
        }
        return .valid
    }

    /// Brings all fields into their ranges, and moves a time that daylight saving skips to after the gap.
    private func normalize(_ time: inout CivilTime, in zone: TimeZoneRules) { Self.normalize(&time, in: zone) }

    private static func normalize(_ time: inout CivilTime, in zone: TimeZoneRules) {
        let microsecond = time.microsecond
        time = zone.local(at: zone.instant(of: time))
        time.microsecond = microsecond
    }
}

extension CivilTime {
    /// A field, from the largest to the smallest. The last one has seconds and microseconds.
    enum Field: Int, CaseIterable {
        case year, month, day, hour, minute, microsecond

        /// The field that counts on when this one has no further value.
        var larger: Field? { Field(rawValue: rawValue - 1) }
    }

    subscript(field: Field) -> Int {
        get {
            switch field {
            case .year: year
            case .month: month
            case .day: day
            case .hour: hour
            case .minute: minute
            case .microsecond: second * 1_000_000 + microsecond
            }
        }
        set {
            switch field {
            case .year: year = newValue
            case .month: month = newValue
            case .day: day = newValue
            case .hour: hour = newValue
            case .minute: minute = newValue
            case .microsecond: (second, microsecond) = (newValue / 1_000_000, newValue % 1_000_000)
            }
        }
    }

    /// Sets all smaller fields to their beginning.
    mutating func clear(below field: Field) {
        if field.rawValue < Field.month.rawValue { month = 1 }
        if field.rawValue < Field.day.rawValue { day = 1 }
        if field.rawValue < Field.hour.rawValue { hour = 0 }
        if field.rawValue < Field.minute.rawValue { minute = 0 }
        if field.rawValue < Field.microsecond.rawValue { (second, microsecond) = (0, 0) }
    }
}
