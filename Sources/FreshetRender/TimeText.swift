/// Formats instants and durations. Instants are microseconds since 1970 by the wall clock; the present is a parameter.
package enum TimeText {
    /// Such as `3min 2s ago`, `in 12min`, `now`: the two largest units, as in systemctl.
    package static func relative(_ instant: Int64, now: Int64) -> String {
        let distance = instant > now ? difference(instant, now) : difference(now, instant)
        guard distance >= 1_000_000 else { return "now" }
        let text = span(distance)
        return instant > now ? "in \(text)" : "\(text) ago"
    }

    /// A duration of any length: `85 ms`, `2.4 s`, `3min 2s`, `2 days 5h`.
    package static func duration(_ microseconds: Int64) -> String {
        switch max(0, microseconds) {
        case let time where time < 1_000: "\(time) µs"
        case let time where time < 1_000_000: "\(time / 1_000) ms"
        case let time where time < 60_000_000: "\(tenths(time / 100_000)) s"
        case let time: span(time)
        }
    }

    /// A configured duration, exactly: `2s`, `1min 30s`, `500ms`.
    package static func setting(_ microseconds: Int64) -> String {
        let small: [(name: String, length: Int64)] = [("ms", 1_000), ("us", 1)]
        var rest = max(0, microseconds)
        var parts: [String] = []
        for (name, plural, seconds) in units.dropFirst(2) where rest >= seconds * 1_000_000 {
            let count = rest / (seconds * 1_000_000)
            parts.append("\(count)\(count == 1 ? name : plural)")
            rest %= seconds * 1_000_000
        }
        for (name, length) in small where rest >= length {
            parts.append("\(rest / length)\(name)")
            rest %= length
        }
        return parts.isEmpty ? "0s" : parts.joined(separator: " ")
    }

    /// Such as `Sat 2026-11-21 02:39:23 UTC`.
    ///
    /// - Parameters:
    ///   - offset: seconds east of UTC at that instant.
    ///   - zone: that offset's name.
    package static func absolute(_ instant: Int64, offset: Int64 = 0, zone: String = "UTC") -> String {
        let seconds = floorDivide(instant, 1_000_000) &+ offset
        let days = floorDivide(seconds, 86_400)
        let date = civil(days)
        let weekday = weekdays[Int(floorModulo(days + 4, 7))]
        return "\(weekday) \(padded(date.year, 4))-\(padded(date.month))-\(padded(date.day)) "
            + "\(clock(seconds)) \(zone)"
    }

    /// The time of day with milliseconds, such as `02:39:23.042`.
    package static func timeOfDay(_ instant: Int64, offset: Int64 = 0) -> String {
        let milliseconds = floorDivide(instant, 1_000)
        return clock(floorDivide(milliseconds, 1_000) &+ offset) + "." + padded(floorModulo(milliseconds, 1_000), 3)
    }

    /// The label of a tick: as exact as the step, and the date at midnight.
    ///
    /// - Parameter step: the distance between ticks, in microseconds.
    static func tick(_ instant: Int64, step: Int64, offset: Int64) -> String {
        let seconds = floorDivide(instant, 1_000_000) &+ offset
        if floorModulo(seconds, 86_400) == 0, step >= 1_000_000 {
            let date = civil(floorDivide(seconds, 86_400))
            return "\(months[Int(date.month) - 1]) \(date.day)"
        }
        if step < 1_000_000 { return timeOfDay(instant, offset: offset) }
        return step % 60_000_000 == 0 ? String(clock(seconds).prefix(5)) : clock(seconds)
    }

    /// The instant of a date and a time of day, in microseconds since 1970, in UTC; nil if there is no such day.
    ///
    /// - Parameter seconds: since midnight.
    package static func instant(year: Int64, month: Int64, day: Int64, seconds: Int64) -> Int64? {
        guard (1...9_999).contains(year), (1...12).contains(month), (1...31).contains(day) else { return nil }
        // Years are counted from March, as in `civil`.
        let shifted = month > 2 ? year : year - 1
        let cycle = floorDivide(shifted, 400)
        let yearOfCycle = floorModulo(shifted, 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let days = cycle * 146_097 + yearOfCycle * 365 + yearOfCycle / 4 - yearOfCycle / 100 + dayOfYear - 719_468
        guard civil(days) == (year, month, day) else { return nil }
        return (days * 86_400 + seconds) * 1_000_000
    }

    /// The date of an instant in local time (with its offset added).
    package static func date(of instant: Int64) -> (year: Int64, month: Int64, day: Int64) {
        civil(floorDivide(floorDivide(instant, 1_000_000), 86_400))
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]

    /// The seconds of each unit. Months and years have the mean lengths of systemd.time(7).
    private static let units: [(name: String, plural: String, seconds: Int64)] = [
        (" year", " years", 31_557_600), (" month", " months", 2_629_800), (" week", " weeks", 604_800),
        (" day", " days", 86_400), ("h", "h", 3_600), ("min", "min", 60), ("s", "s", 1),
    ]

    private static func span(_ microseconds: Int64) -> String {
        let seconds = microseconds / 1_000_000
        guard let first = units.firstIndex(where: { seconds >= $0.seconds }) else { return "0s" }
        func text(_ count: Int64, _ unit: Int) -> String {
            "\(count)\(count == 1 ? units[unit].name : units[unit].plural)"
        }
        let large = text(seconds / units[first].seconds, first)
        guard first + 1 < units.count else { return large }
        let rest = seconds % units[first].seconds / units[first + 1].seconds
        return rest == 0 ? large : "\(large) \(text(rest, first + 1))"
    }

    private static func clock(_ seconds: Int64) -> String {
        let time = floorModulo(seconds, 86_400)
        return "\(padded(time / 3_600)):\(padded(time / 60 % 60)):\(padded(time % 60))"
    }

    /// The Gregorian date of a day counted from 1970-01-01. Years are counted from March, so that the leap day is the
    /// last day of a year, in cycles of 400 years (146,097 days).
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468  // from 0000-03-01
        let cycle = floorDivide(shifted, 146_097)
        let dayOfCycle = floorModulo(shifted, 146_097)
        let yearOfCycle = (dayOfCycle - dayOfCycle / 1_460 + dayOfCycle / 36_524 - dayOfCycle / 146_096) / 365
        let dayOfYear = dayOfCycle - (365 * yearOfCycle + yearOfCycle / 4 - yearOfCycle / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = cycle * 400 + yearOfCycle + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }

    private static func padded(_ number: Int64, _ digits: Int = 2) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }

    private static func tenths(_ count: Int64) -> String { "\(count / 10).\(count % 10)" }

    /// The difference of two instants, clamped: instants from a socket can be any numbers.
    private static func difference(_ later: Int64, _ earlier: Int64) -> Int64 {
        let (result, overflow) = later.subtractingReportingOverflow(earlier)
        return overflow ? .max : result
    }

    private static func floorDivide(_ number: Int64, _ divisor: Int64) -> Int64 {
        number >= 0 ? number / divisor : (number + 1) / divisor - 1
    }

    private static func floorModulo(_ number: Int64, _ divisor: Int64) -> Int64 {
        let rest = number % divisor
        return rest < 0 ? rest + divisor : rest
    }
}
