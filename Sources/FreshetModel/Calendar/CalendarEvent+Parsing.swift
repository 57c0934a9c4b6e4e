extension CalendarEvent {
    /// Why a text is not a calendar event: the rest of a sentence that begins with the key.
    package struct ParseError: Error, Hashable, Sendable {
        package var message: String
        package var remedy: String
    }

    /// The longest text, in bytes.
    package static let maximumLength = 256
    /// How many values a field may list.
    private static let maximumComponents = 60
    /// The words for whole events, with what they stand for.
    private static let words: [String: String] = [
        "minutely": "*-*-* *:*:00", "hourly": "*-*-* *:00:00", "daily": "*-*-* 00:00:00",
        "weekly": "Mon *-*-* 00:00:00", "monthly": "*-*-01 00:00:00", "quarterly": "*-01,04,07,10-01 00:00:00",
        "semiannually": "*-01,07-01 00:00:00", "semi-annually": "*-01,07-01 00:00:00",
        "biannually": "*-01,07-01 00:00:00", "bi-annually": "*-01,07-01 00:00:00",
        "yearly": "*-01-01 00:00:00", "annually": "*-01-01 00:00:00", "anually": "*-01-01 00:00:00",
    ]
    /// The words that users should know.
    package static let knownWords = [
        "minutely", "hourly", "daily", "weekly", "monthly", "quarterly", "semiannually", "yearly",
    ]
    private static let weekdayNames: [(name: String, number: Int)] = [
        ("monday", 0), ("mon", 0), ("tuesday", 1), ("tue", 1), ("wednesday", 2), ("wed", 2), ("thursday", 3),
        ("thu", 3), ("friday", 4), ("fri", 4), ("saturday", 5), ("sat", 5), ("sunday", 6), ("sun", 6),
    ]

    /// Whether a text is one of the words for whole events, such as `daily`, without a time zone.
    package static func isWord(_ text: String) -> Bool { words[text.lowercased()] != nil }

    /// Reads a text in the notation of systemd.time(7).
    package init(_ text: String) throws(ParseError) {
        self.text = text
        guard text.utf8.count <= Self.maximumLength else {
            throw ParseError(message: "is longer than \(Self.maximumLength) bytes", remedy: "divide it into several")
        }
        guard text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) else { throw Self.invalid(text) }
        var rest = text[...]
        zone = Self.takeZone(from: &rest)
        let whole = Self.words[rest.lowercased()] ?? String(rest)
        var parser = CalendarParser(rest: Array(whole.utf8)[...])
        guard !parser.rest.isEmpty, parse(&parser) else { throw Self.invalid(text) }
        try validate()
    }

    private static func invalid(_ text: String) -> ParseError {
        let looksLikeCron = text.split(separator: " ").count == 5
        return ParseError(
            message: "is not a calendar time as systemd.time(7) describes",
            remedy: looksLikeCron
                ? "this looks like cron's notation; '0 3 * * 1-5' is 'Mon..Fri 03:00'"
                : "examples: daily, 'Mon..Fri 06:30', '*-*-01 03:00', '*:0/15'; 'systemd-analyze calendar' explains them"
        )
    }

    /// Takes the last word if it is the name of a time zone.
    private static func takeZone(from rest: inout Substring) -> String? {
        guard let space = rest.lastIndex(of: " ") else { return nil }
        let word = rest[space...].dropFirst()
        guard let first = word.utf8.first, (first | 0x20) >= UInt8(ascii: "a"), (first | 0x20) <= UInt8(ascii: "z"),
            word.utf8.allSatisfy({ byte in
                (byte | 0x20) >= UInt8(ascii: "a") && (byte | 0x20) <= UInt8(ascii: "z")
                    || (0x30...0x39).contains(byte) || "/_-+".utf8.contains(byte)
            }), !word.hasSuffix("/"), !word.contains("//"),
            !weekdayNames.contains(where: { $0.name == word.lowercased() })
        else { return nil }
        rest = rest[..<space]
        while rest.last == " " { rest = rest.dropLast() }
        return word.lowercased() == "utc" ? "UTC" : String(word)
    }

    // MARK: Parts

    private mutating func parse(_ parser: inout CalendarParser) -> Bool {
        guard parseWeekdays(&parser), parseDate(&parser), parseTime(&parser) else { return false }
        return parser.rest.isEmpty
    }

    private mutating func parseWeekdays(_ parser: inout CalendarParser) -> Bool {
        var bits: UInt8 = 0
        var isFirst = true
        var rangeStart: Int?
        while true {
            guard let day = parser.takeWeekday(Self.weekdayNames) else {
                guard isFirst else { return false }
                return true
            }
            isFirst = false
            if let start = rangeStart {
                guard start <= day else { return false }
                for number in start...day { bits |= 1 << UInt8(number) }
            }
            bits |= 1 << UInt8(day)
            weekdays = bits == 0x7F ? nil : bits
            if parser.rest.isEmpty { return true }
            if parser.takeSpaces() { return true }
            if parser.take("..") || parser.take("-") {
                guard rangeStart == nil else { return false }
                rangeStart = day
            } else if parser.take(",") {
                rangeStart = nil
            } else {
                return false
            }
            // A comma may be the last character, a range may not.
            if parser.rest.isEmpty || parser.rest.first == UInt8(ascii: " ") {
                _ = parser.takeSpaces()
                return rangeStart == nil
            }
        }
    }

    private mutating func parseDate(_ parser: inout CalendarParser) -> Bool {
        guard !parser.rest.isEmpty else { return true }
        var date = parser
        guard let first = date.takeChain() else { return false }
        // A time follows, not a date.
        if date.rest.isEmpty || date.rest.first == UInt8(ascii: ":") { return true }
        guard let second = takeDatePart(&date) else { return false }
        if date.rest.isEmpty || date.takeSpaces() {
            (months, days) = (first.components, second.components)
        } else {
            guard !countsFromEnd, let third = takeDatePart(&date), date.rest.isEmpty || date.takeSpaces() else {
                return false
            }
            (years, months, days) = (first.components?.map(\.inCentury), second.components, third.components)
        }
        if days == nil { countsFromEnd = false }
        parser = date
        return true
    }

    /// Takes `-` or `~`, and the values after it.
    private mutating func takeDatePart(_ parser: inout CalendarParser) -> CalendarParser.Chain? {
        if parser.take("~") {
            countsFromEnd = true
        } else if !parser.take("-") {
            return nil
        }
        return parser.takeChain()
    }

    private mutating func parseTime(_ parser: inout CalendarParser) -> Bool {
        let zero = [Component(start: 0, stop: nil, interval: 0)]
        (hours, minutes, microseconds) = (zero, zero, zero)
        guard !parser.rest.isEmpty else { return true }
        guard let hour = parser.takeChain(), parser.take(":"), let minute = parser.takeChain() else { return false }
        (hours, minutes) = (hour.components, minute.components)
        guard !parser.rest.isEmpty else { return true }
        guard parser.take(":"), let second = parser.takeChain(ofSeconds: true) else { return false }
        // Every second, not every microsecond.
        microseconds = second.components ?? [Component(start: 0, stop: nil, interval: 1_000_000)]
        return true
    }

    // MARK: Ranges

    private func validate() throws(ParseError) {
        let fields: [(name: String, components: [Component]?, range: ClosedRange<Int>, fromEnd: Bool)] = [
            ("year", years, 1970...2199, false), ("month", months, 1...12, false),
            // A month has at least 28 days.
            ("day", days, 1...(countsFromEnd ? 28 : 31), countsFromEnd), ("hour", hours, 0...23, false),
            ("minute", minutes, 0...59, false), ("second", microseconds, 0...59_999_999, false),
        ]
        for field in fields {
            for component in field.components ?? []
            where !component.isValid(in: field.range, fromEnd: field.fromEnd) {
                let isSecond = field.name == "second"
                throw ParseError(
                    message: "has a \(field.name) or a repetition that does not fit",
                    remedy: "a \(field.name) is from \(field.range.lowerBound) to "
                        + "\(isSecond ? 59 : field.range.upperBound)"
                        + (field.fromEnd ? ", counted from the end of the month" : ""))
            }
            guard (field.components ?? []).count <= Self.maximumComponents else {
                throw ParseError(
                    message: "lists more than \(Self.maximumComponents) values for the \(field.name)",
                    remedy: "use a range or a repetition")
            }
        }
    }
}

extension CalendarEvent.Component {
    /// A year of two digits as the year that it stands for.
    fileprivate var inCentury: Self {
        func full(_ year: Int) -> Int { (0..<70).contains(year) ? year + 2000 : year < 100 ? year + 1900 : year }
        return Self(start: full(start), stop: stop.map(full), interval: interval)
    }

    /// Whether its values are in a range, and at least one repetition too.
    fileprivate func isValid(in range: ClosedRange<Int>, fromEnd: Bool) -> Bool {
        guard range.contains(start), interval <= range.upperBound - range.lowerBound else { return false }
        if let stop { return range.contains(stop) && start + interval <= stop }
        return fromEnd ? start - interval >= range.lowerBound : start + interval <= range.upperBound
    }
}

/// Takes parts from the start of a text.
private struct CalendarParser {
    /// The values of a field.
    struct Chain {
        /// Nil: every value.
        var components: [CalendarEvent.Component]?
    }

    var rest: ArraySlice<UInt8>

    mutating func take(_ text: StaticString) -> Bool {
        let isNext = text.withUTF8Buffer { rest.starts(with: $0) }
        if isNext { rest = rest.dropFirst(text.utf8CodeUnitCount) }
        return isNext
    }

    mutating func takeSpaces() -> Bool {
        let spaces = rest.prefix { $0 == UInt8(ascii: " ") }
        rest = rest.dropFirst(spaces.count)
        return !spaces.isEmpty
    }

    mutating func takeWeekday(_ names: [(name: String, number: Int)]) -> Int? {
        let word = rest.prefix { ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z") }
        let text = String(decoding: word, as: UTF8.self).lowercased()
        guard let day = names.first(where: { $0.name == text })?.number else { return nil }
        rest = rest.dropFirst(word.count)
        return day
    }

    /// The values of one field: `*`, or a list of values, ranges and repetitions.
    mutating func takeChain(ofSeconds isSecond: Bool = false) -> Chain? {
        if take("*") { return Chain(components: nil) }
        var components: [CalendarEvent.Component] = []
        repeat {
            guard let component = takeComponent(ofSeconds: isSecond) else { return nil }
            components.append(component)
        } while take(",")
        return Chain(components: components)
    }

    private mutating func takeComponent(ofSeconds isSecond: Bool) -> CalendarEvent.Component? {
        guard let start = takeNumber(withFraction: isSecond) else { return nil }
        var component = CalendarEvent.Component(start: start, stop: nil, interval: 0)
        if take("..") {
            guard let stop = takeNumber(withFraction: isSecond) else { return nil }
            component.stop = stop
            component.interval = isSecond ? 1_000_000 : 1
        }
        if take("/") {
            guard let interval = takeNumber(withFraction: isSecond), interval > 0 else { return nil }
            component.interval = interval
        }
        guard rest.isEmpty || " ,-~:".utf8.contains(rest.first ?? 0) else { return nil }
        // A range of one value.
        if component.stop == start { (component.stop, component.interval) = (nil, 0) }
        return component
    }

    /// A decimal number; a number of seconds is in microseconds.
    private mutating func takeNumber(withFraction isSecond: Bool) -> Int? {
        guard let whole = takeDigits(), whole.count <= 6, let value = Int(String(decoding: whole, as: UTF8.self)) else {
            return nil
        }
        guard isSecond else { return value }
        var microseconds = value * 1_000_000
        if rest.first == UInt8(ascii: "."), !rest.starts(with: "..".utf8) {
            rest = rest.dropFirst()
            guard let digits = takeDigits() else { return nil }
            var fraction = 0
            for place in 0..<6 {
                fraction = fraction * 10 + (place < digits.count ? Int(digits[digits.startIndex + place] - 0x30) : 0)
            }
            // Rounded as systemd does.
            if digits.count > 6, digits[digits.startIndex + 6] >= UInt8(ascii: "5") { fraction += 1 }
            microseconds += fraction
        }
        return microseconds
    }

    private mutating func takeDigits() -> ArraySlice<UInt8>? {
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        guard !digits.isEmpty else { return nil }
        rest = rest.dropFirst(digits.count)
        return digits
    }
}
