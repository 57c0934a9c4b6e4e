import ArgumentParser
import FreshetRender

/// An instant on the command line, in the syntax of systemd.time(7): `-1h`, `2 hours ago`, `+5min`, `yesterday`,
/// `09:30`, `2026-11-21 09:30:00`, the same with `UTC`, `@1795228763`, and the format that freshetctl prints.
///
/// Its meaning depends on the present, and without `UTC` on the time zone.
struct Instant: ExpressibleByArgument, Hashable, Sendable {
    private enum Meaning: Hashable {
        /// Microseconds from now; positive in the future.
        case relative(Int64)
        /// Microseconds since 1970.
        case absolute(Int64)
        /// A date and a time of day, in local time unless UTC. Without a date, the date is today plus `days`.
        case calendar(date: Date?, days: Int64, seconds: Int64, microseconds: Int64, isUTC: Bool)
    }

    private struct Date: Hashable {
        var year: Int64
        var month: Int64
        var day: Int64
    }

    private let meaning: Meaning

    init?(argument: String) {
        guard let meaning = Self.read(argument) else { return nil }
        self.meaning = meaning
    }

    /// Microseconds since 1970.
    ///
    /// - Parameter timeZone: seconds east of UTC at an instant.
    func resolved(now: Int64, timeZone: (Int64) -> (offset: Int64, name: String)) -> Int64 {
        switch meaning {
        case .relative(let distance):
            let (sum, overflow) = now.addingReportingOverflow(distance)
            return overflow ? (distance < 0 ? 0 : .max) : max(0, sum)
        case .absolute(let instant): return instant
        case .calendar(let date, let days, let seconds, let microseconds, let isUTC):
            func offset(_ instant: Int64) -> Int64 { isUTC ? 0 : timeZone(instant).offset * 1_000_000 }
            let date =
                date
                ?? {
                    let today = TimeText.date(of: now + offset(now))
                    return Date(year: today.year, month: today.month, day: today.day)
                }()
            let local =
                (TimeText.instant(year: date.year, month: date.month, day: date.day, seconds: seconds) ?? 0)
                + days * 86_400_000_000 + microseconds
            // The offset must be the one at the result: near a change of the clocks, the second guess is right.
            let guess = local - offset(local)
            return max(0, local - offset(guess))
        }
    }

    // MARK: Parsing

    private static func read(_ argument: String) -> Meaning? {
        let text = argument.trimmed
        switch text {
        case "": return nil
        case "now": return .relative(0)
        case "today": return midnight(0)
        case "yesterday": return midnight(-1)
        case "tomorrow": return midnight(1)
        default: break
        }
        if text.hasPrefix("@") { return unixTime(text.dropFirst()) }
        if text.hasPrefix("-") { return span(text.dropFirst()).map { .relative(-$0) } }
        if text.hasPrefix("+") { return span(text.dropFirst()).map { .relative($0) } }
        if text.hasSuffix(" ago") { return span(text.dropLast(4)).map { .relative(-$0) } }
        if text.hasSuffix(" left") { return span(text.dropLast(5)).map { .relative($0) } }
        return calendar(text)
    }

    private static func midnight(_ days: Int64) -> Meaning {
        .calendar(date: nil, days: days, seconds: 0, microseconds: 0, isUTC: false)
    }

    private static func span(_ text: Substring) -> Int64? {
        // `infinity` is not an instant.
        DurationArgument(argument: String(text).trimmed)?.microseconds
    }

    private static func unixTime(_ text: Substring) -> Meaning? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let seconds = number(first, 1...12) else { return nil }
        guard parts.count == 2 else { return .absolute(seconds * 1_000_000) }
        return fraction(parts[1]).map { .absolute(seconds * 1_000_000 + $0) }
    }

    /// Parses `[WEEKDAY] [DATE] [TIME] [UTC]`, or the format of RFC 3339.
    private static func calendar(_ text: String) -> Meaning? {
        var text = text
        var isUTC = false
        if text.hasSuffix(" UTC") {
            (text, isUTC) = (String(text.dropLast(4)).trimmed, true)
        } else if text.hasSuffix("Z"), text.contains("T") {
            (text, isUTC) = (String(text.dropLast()), true)
        }
        var words = text.split { $0 == " " || $0 == "T" && text.contains("-") && !text.hasPrefix("T") }
        if let first = words.first, weekdays.contains(String(first.prefix(3)).lowercased()),
            first.allSatisfy(\.isLetter)
        {
            words.removeFirst()
        }
        var day: Date?
        if let first = words.first, first.contains("-") {
            guard let read = date(first) else { return nil }
            day = read
            words.removeFirst()
        }
        guard let clock = words.first else {
            return day.map { .calendar(date: $0, days: 0, seconds: 0, microseconds: 0, isUTC: isUTC) }
        }
        guard words.count == 1, let (seconds, microseconds) = time(clock) else { return nil }
        return .calendar(date: day, days: 0, seconds: seconds, microseconds: microseconds, isUTC: isUTC)
    }

    private static let weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

    private static func date(_ text: Substring) -> Date? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, var year = number(parts[0], 2...4), let month = number(parts[1], 1...2),
            let day = number(parts[2], 1...2)
        else { return nil }
        // As in systemd.time(7): years 69 to 99 belong to the last century.
        if parts[0].count == 2 { year += year >= 69 ? 1_900 : 2_000 }
        guard TimeText.instant(year: year, month: month, day: day, seconds: 0) != nil else { return nil }
        return Date(year: year, month: month, day: day)
    }

    private static func time(_ text: Substring) -> (seconds: Int64, microseconds: Int64)? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count), let hours = number(parts[0], 1...2), hours < 24,
            let minutes = number(parts[1], 2...2), minutes < 60
        else { return nil }
        guard parts.count == 3 else { return (hours * 3_600 + minutes * 60, 0) }
        let halves = parts[2].split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let seconds = number(halves[0], 2...2), seconds < 60 else { return nil }
        guard let microseconds = halves.count == 2 ? fraction(halves[1]) : 0 else { return nil }
        return (hours * 3_600 + minutes * 60 + seconds, microseconds)
    }

    private static func number(_ text: Substring, _ digits: ClosedRange<Int>) -> Int64? {
        digits.contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
    }

    /// The microseconds of the digits after the point.
    private static func fraction(_ text: Substring) -> Int64? {
        guard let digits = number(text, 1...6) else { return nil }
        return (text.utf8.count..<6).reduce(digits) { product, _ in product * 10 }
    }
}

extension StringProtocol {
    /// The text without spaces at its ends.
    fileprivate var trimmed: String {
        var rest = Substring(self).drop { $0 == " " }
        while rest.last == " " { rest.removeLast() }
        return String(rest)
    }
}
