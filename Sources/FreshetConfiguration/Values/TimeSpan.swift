/// Durations as systemd.time(7) writes them: `15min`, `1h 30s`, `1.5d`; a number without a unit is seconds.
package enum TimeSpan {
    /// The longest duration that can be configured: 100 years. Nanoseconds overflow 64 bits only after 292 years.
    package static let longest: Duration = .seconds(100 * 31_557_600)

    private static let units: [(names: [String], nanoseconds: Int64)] = [
        (["s", "sec", "second", "seconds"], 1_000_000_000),
        (["min", "m", "minute", "minutes"], 60_000_000_000),
        (["h", "hr", "hour", "hours"], 3_600_000_000_000),
        (["d", "day", "days"], 86_400_000_000_000),
        (["w", "week", "weeks"], 604_800_000_000_000),
        (["ms", "msec"], 1_000_000),
        // Unicode has two micro signs.
        (["us", "usec", "\u{B5}s", "\u{3BC}s"], 1000),
        // A twelfth of a year of 365.25 days.
        (["M", "month", "months"], 2_629_800_000_000_000),
        (["y", "year", "years"], 31_557_600_000_000_000),
    ]

    static func read(_ text: String) throws(ValueError) -> Duration {
        if let duration = simple(text) { return duration }
        var rest = text[...].drop(while: \.isWhitespace)
        guard !rest.isEmpty else { throw ValueError("has to be a duration such as 15min, but is empty") }
        guard !rest.hasPrefix("-") else { throw ValueError("must not be negative") }
        var total: Int64 = 0
        while !rest.isEmpty {
            let number = try DecimalNumber.read(from: &rest, ofKind: "a duration such as 15min", in: text)
            rest = rest.drop(while: \.isWhitespace)
            let unit = rest.prefix { !$0.isWhitespace && !$0.isNumber && $0 != "." && $0 != "-" && $0 != "+" }
            rest = rest.dropFirst(unit.count).drop(while: \.isWhitespace)
            let (sum, overflow) = total.addingReportingOverflow(
                number.multiplied(by: UInt64(try nanoseconds(of: unit))).flatMap { Int64(exactly: $0) } ?? .max)
            guard !overflow, .nanoseconds(sum) <= longest else {
                throw ValueError("is longer than 100 years")
            }
            total = sum
        }
        return .nanoseconds(total)
    }

    /// The most usual form: a number of at most nine digits, and perhaps a unit of one letter or `min`. Nil: another
    /// form, or a duration that may be too long.
    private static func simple(_ text: String) -> Duration? {
        var number: Int64 = 0
        var digits = 0
        var rest = text.utf8[...]
        while let byte = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
            number = number * 10 + Int64(byte - UInt8(ascii: "0"))
            digits += 1
            guard digits <= 9 else { return nil }
            rest.removeFirst()
        }
        guard digits > 0 else { return nil }
        let unit: Int64
        switch rest.count {
        case 0: unit = 1
        case 1:
            switch rest.first {
            case UInt8(ascii: "s"): unit = 1
            case UInt8(ascii: "m"): unit = 60
            case UInt8(ascii: "h"): unit = 3600
            case UInt8(ascii: "d"): unit = 86_400
            case UInt8(ascii: "w"): unit = 604_800
            default: return nil
            }
        case 3 where rest.elementsEqual("min".utf8): unit = 60
        default: return nil
        }
        // safe: nine digits times the seconds of a week are below 2⁶³.
        let duration = Duration.seconds(number * unit)
        return duration <= longest ? duration : nil
    }

    private static func nanoseconds(of unit: Substring) throws(ValueError) -> Int64 {
        guard !unit.isEmpty else { return 1_000_000_000 }
        if let known = units.first(where: { $0.names.contains(String(unit)) }) { return known.nanoseconds }
        let near =
            units.flatMap(\.names).first { $0.count > 1 && $0 == unit.lowercased() }
            ?? Suggestion.nearest(to: String(unit), among: units.flatMap(\.names).filter { $0.count > 2 })
        throw ValueError(
            "has the unknown time unit \(unit.quoted)",
            remedy: near.map { "did you mean \($0.quoted)?" } ?? "the units are ms, s, min, h, d, w, M (months) and y")
    }

    /// A duration in the notation of the configuration, such as `1h 30s`, rounded down to microseconds.
    package static func text(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        var rest = seconds
        var parts: [String] = []
        for (unit, length) in [("w", 604_800), ("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)] as [(String, Int64)] {
            if rest / length > 0 { parts.append("\(rest / length)\(unit)") }
            rest %= length
        }
        let microseconds = attoseconds / 1_000_000_000_000
        if microseconds / 1000 > 0 { parts.append("\(microseconds / 1000)ms") }
        if microseconds % 1000 > 0 { parts.append("\(microseconds % 1000)us") }
        return parts.isEmpty ? "0s" : parts.joined(separator: " ")
    }
}

/// A decimal number without sign: digits, and perhaps a point and more digits.
struct DecimalNumber {
    var whole: UInt64
    /// Digits after the point, in units of 10⁻⁹; further ones are dropped.
    var billionths: UInt64

    /// Takes a number from the start of a text.
    ///
    /// - Parameters:
    ///   - kind: The expected kind of value, for the error message.
    ///   - text: The whole value, which the error message quotes.
    static func read(
        from rest: inout Substring, ofKind kind: String, in text: String
    ) throws(ValueError) -> DecimalNumber {
        let digits = rest.prefix { "0"..."9" ~= $0 }
        rest = rest.dropFirst(digits.count)
        var fraction: Substring = ""
        if rest.hasPrefix(".") {
            fraction = rest.dropFirst().prefix { "0"..."9" ~= $0 }
            rest = rest.dropFirst(fraction.count + 1)
            guard !fraction.isEmpty else { throw ValueError("has to be \(kind), not \(text.quoted)") }
        }
        guard !digits.isEmpty else { throw ValueError("has to be \(kind), not \(text.quoted)") }
        guard let whole = UInt64(digits) else { throw ValueError("has a number that is too large: \(text.quoted)") }
        let billionths = UInt64(fraction.prefix(9)) ?? 0
        let scale = (fraction.count..<max(9, fraction.count)).reduce(UInt64(1)) { scale, _ in scale * 10 }
        return DecimalNumber(whole: whole, billionths: billionths * scale)
    }

    /// The product, rounded down; nil if it does not fit.
    func multiplied(by unit: UInt64) -> UInt64? {
        let (product, overflow) = whole.multipliedReportingOverflow(by: unit)
        // safe: below 10⁹ billionths the high word is below the divisor.
        let (part, _) = UInt64(1_000_000_000).dividingFullWidth(billionths.multipliedFullWidth(by: unit))
        let (sum, carried) = product.addingReportingOverflow(part)
        return overflow || carried ? nil : sum
    }
}

extension ValueKind where Value == Duration {
    /// - Parameter range: The allowed durations, independent of other keys.
    static func duration(_ range: ClosedRange<Duration> = .zero...TimeSpan.longest) -> ValueKind {
        ValueKind(name: "a duration such as 15min") { scalar throws(ValueError) in
            guard scalar.text != "infinity" else {
                throw ValueError("cannot be 'infinity'", remedy: "choose a finite duration")
            }
            let duration = try TimeSpan.read(scalar.text)
            guard range.contains(duration) else {
                throw duration < range.lowerBound
                    ? ValueError("has to be at least \(TimeSpan.text(range.lowerBound))")
                    : ValueError("has to be at most \(TimeSpan.text(range.upperBound))")
            }
            return duration
        }
    }
}

extension ValueKind where Value == Duration? {
    /// A duration, or `infinity`, which is read as nil.
    static func durationOrInfinity(_ range: ClosedRange<Duration>) -> ValueKind {
        let finite = ValueKind<Duration>.duration(range)
        return ValueKind(name: finite.name) { scalar throws(ValueError) in
            scalar.text == "infinity" ? nil : try finite.read(scalar)
        }
    }
}
