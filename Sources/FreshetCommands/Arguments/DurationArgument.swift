import ArgumentParser

/// A duration on the command line, in the syntax of systemd.time(7): `30s`, `1h 30min`, `90`. A number alone is in
/// seconds.
struct DurationArgument: ExpressibleByArgument, Hashable, Sendable {
    /// Nil for `infinity`.
    var microseconds: Int64?

    init(microseconds: Int64?) { self.microseconds = microseconds }

    init?(argument: String) {
        if argument == "infinity" {
            self.init(microseconds: nil)
            return
        }
        var rest = argument.filter { $0 != " " }[...]
        guard !rest.isEmpty else { return nil }
        var sum: Int64 = 0
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            rest = rest.dropFirst(digits.count)
            let unit = rest.prefix { $0.isLetter }
            rest = rest.dropFirst(unit.count)
            guard let count = Int64(digits), let scale = Self.units[String(unit)] else { return nil }
            let (product, isTooLong) = count.multipliedReportingOverflow(by: scale)
            let (total, isTooMuch) = sum.addingReportingOverflow(product)
            guard !isTooLong, !isTooMuch else { return nil }
            sum = total
        }
        self.init(microseconds: sum)
    }

    var duration: Duration? { microseconds.map { .microseconds($0) } }

    /// Microseconds of each unit.
    private static let units: [String: Int64] = {
        let names: [(Int64, [String])] = [
            (1, ["us", "µs", "usec"]), (1_000, ["ms", "msec"]),
            (1_000_000, ["", "s", "sec", "second", "seconds"]),
            (60_000_000, ["m", "min", "minute", "minutes"]), (3_600_000_000, ["h", "hr", "hour", "hours"]),
            (86_400_000_000, ["d", "day", "days"]), (604_800_000_000, ["w", "week", "weeks"]),
        ]
        return Dictionary(uniqueKeysWithValues: names.flatMap { scale, names in names.map { ($0, scale) } })
    }()
}
