@testable import FreshetConfiguration
@testable import FreshetEmitters

extension FuzzTarget {
    /// Dates, pauses and durations as text. The first eight bytes are also read as a number of seconds, which is
    /// written as a date and read again.
    static let httpDates = FuzzTarget(
        "dates", limit: 8_192,
        shapes: [
            CostShape("words", unit: "Sat ", upTo: 8_192), CostShape("digits", unit: "9", upTo: 8_192),
            CostShape("a fraction", before: "0.", unit: "9", after: "s", upTo: 8_192),
            CostShape("signs", unit: "+", upTo: 8_192), CostShape("commas", unit: ",", upTo: 8_192),
            CostShape("spans", unit: "1s ", upTo: 8_192), CostShape("points", unit: "1.", upTo: 8_192),
            CostShape("a long unit", before: "1", unit: "s", upTo: 8_192),
        ],
        read: { input in
            let text = String(decoding: input, as: UTF8.self)
            keep(RetryAfter.parse(text, now: now))
            keep(
                OriginFreshness(cacheControl: nil, expires: text, date: text, age: text).remaining(
                    after: .zero, now: now))
            keep(try? TimeSpan.read(text))
            keep(try? ByteSize.read(text))
        },
        check: { input throws(FuzzViolation) in
            let text = String(decoding: input, as: UTF8.self)
            if let pause = RetryAfter.parse(text, now: now) {
                try hold("a pause is between nothing and a week", (.zero...RetryAfter.longest).contains(pause))
            }
            for date in [nil, text] {
                let freshness = OriginFreshness(cacheControl: nil, expires: text, date: date, age: nil)
                if let remaining = freshness.remaining(after: .zero, now: now) {
                    try hold("content is fresh for no time below zero", remaining >= .zero)
                }
            }
            if let span = try? TimeSpan.read(text) {
                try hold("a duration is at most a hundred years", (.zero...TimeSpan.longest).contains(span))
                let written = TimeSpan.text(span)
                let again = try? TimeSpan.read(written)
                try hold(
                    "a duration that is written again is the same, to the microsecond",
                    again.map { span - $0 < .microseconds(1) && span >= $0 } == true)
            }
            if let size = try? ByteSize.read(text) {
                let again = try? ByteSize.read(ByteSize.text(size))
                try hold("a size that is written again is the same", again == size)
            }
            let number = input.prefix(8).reduce(Int64(0)) { $0 << 5 ^ Int64($1) }
            let seconds = number % 253_402_300_800
            let date = httpDate(seconds)
            let expected = min(Duration.seconds(max(0, seconds - now)), RetryAfter.longest)
            try hold("a date of HTTP is read as written: \(date)", RetryAfter.parse(date, now: now) == expected)
        })

    /// The format of RFC 9110, 5.6.7.
    private static func httpDate(_ seconds: Int64) -> String {
        let days = seconds / 86_400
        let (year, month, day) = civil(days)
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][Int(days % 7)]
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let time = "\(two(seconds / 3_600 % 24)):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
        return "\(weekday), \(two(day)) \(names[Int(month - 1)]) \(year) \(time) GMT"
    }

    /// The date of the proleptic Gregorian calendar, from days since 1970. It counts year by year and month by month,
    /// so that it shares nothing with the code under test.
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        func isLeap(_ year: Int64) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }
        var rest = days % 146_097
        var year = 1970 + days / 146_097 * 400
        while rest >= (isLeap(year) ? 366 : 365) {
            rest -= isLeap(year) ? 366 : 365
            year += 1
        }
        let lengths: [Int64] = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        var month: Int64 = 1
        for length in lengths {
            guard rest >= length else { break }
            rest -= length
            month += 1
        }
        return (year, month, rest + 1)
    }
}
