/// A date and a time of day in the Gregorian calendar, without a time zone. The fields may be out of range until the
/// time is normalized, as with mktime(3).
struct CivilTime: Hashable, Sendable {
    var year: Int
    /// From 1 on.
    var month: Int
    /// From 1 on.
    var day: Int
    var hour = 0
    var minute = 0
    var second = 0
    /// Below a million.
    var microsecond = 0

    init(year: Int, month: Int, day: Int) { (self.year, self.month, self.day) = (year, month, day) }

    /// From seconds since 1970-01-01 00:00 of the same zone.
    init(seconds: Int64) {
        let days = Self.floored(Int(seconds), 86_400)
        var rest = Int(seconds) - days * 86_400
        // Days are counted from 1 March of the year 0, so that a leap day is the last day of its year. An era has 400
        // years.
        let shifted = days + 719_468
        let era = Self.floored(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        hour = rest / 3600
        rest %= 3600
        (minute, second) = (rest / 60, rest % 60)
    }

    /// Seconds since 1970-01-01 00:00 of the same zone. Fields may be out of range.
    var seconds: Int64 {
        Int64(Self.days(year: year, month: month, day: day)) * 86_400 + Int64(hour) * 3600 + Int64(minute) * 60
            + Int64(second)
    }

    /// The days from 1970-01-01 to a date; month and day may be out of range.
    static func days(year: Int, month: Int, day: Int) -> Int {
        let carried = floored(month - 1, 12)
        let month = month - carried * 12
        let year = year + carried - (month <= 2 ? 1 : 0)
        let era = floored(year, 400)
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468 + day - 1
    }

    /// The day of the week: 0 is Monday.
    static func weekday(ofDay days: Int) -> Int { days + 3 - floored(days + 3, 7) * 7 }

    /// The number of days of a month.
    static func length(ofMonth month: Int, year: Int) -> Int {
        days(year: year, month: month + 1, day: 1) - days(year: year, month: month, day: 1)
    }

    private static func floored(_ value: Int, _ divisor: Int) -> Int {
        value >= 0 ? value / divisor : -((divisor - 1 - value) / divisor)
    }
}
