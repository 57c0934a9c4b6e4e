/// The offsets of a time zone from UTC, as a file of the IANA time zone database has them (RFC 8536).
package struct TimeZoneRules: Hashable, Sendable {
    /// The name for people, such as `Europe/Berlin`.
    package var name: String
    /// The instants at which the offset changes, in seconds since 1970, ascending.
    private var transitions: [Int64] = []
    /// The offset from each transition on, in seconds east of UTC.
    private var offsets: [Int] = []
    /// The offset before the first transition.
    private var first = 0
    /// The rule after the last transition; nil: the last offset stays.
    private var rule: DaylightRule?

    package static let utc = TimeZoneRules(fixed: 0, name: "UTC")
    /// The largest file that is read, in bytes. The largest of the database has 4 KiB.
    package static let maximumSize = 64 * 1024
    /// The most transitions that are used.
    private static let maximumTransitions = 4096

    private init(fixed: Int, name: String) { (first, self.name) = (fixed, name) }

    /// Reads a file of the database; nil if it is not such a file.
    package init?(_ bytes: [UInt8], name: String) {
        self.name = name
        var reader = Reader(bytes: bytes)
        guard bytes.count <= Self.maximumSize, let old = Header(&reader) else { return nil }
        if old.version >= 2 {
            // The first part has 32-bit times, and is repeated with 64 bits.
            guard reader.skip(old.size(ofTime: 4)), let header = Header(&reader),
                read(header, ofTime: 8, &reader)
            else { return nil }
            guard let footer = reader.footer() else { return nil }
            if !footer.isEmpty {
                guard let rule = DaylightRule(footer) else { return nil }
                self.rule = rule
            }
        } else {
            guard read(old, ofTime: 4, &reader) else { return nil }
        }
    }

    private mutating func read(_ header: Header, ofTime size: Int, _ reader: inout Reader) -> Bool {
        guard header.times <= Self.maximumTransitions, (1...256).contains(header.types) else { return false }
        for _ in 0..<header.times {
            guard let time = reader.number(size), transitions.last.map({ $0 < time }) ?? true else { return false }
            transitions.append(time)
        }
        var indices: [Int] = []
        for _ in 0..<header.times {
            guard let index = reader.byte(), index < header.types else { return false }
            indices.append(Int(index))
        }
        var types: [Int] = []
        for _ in 0..<header.types {
            guard let offset = reader.number(4), abs(offset) < 26 * 3600, reader.skip(2) else { return false }
            types.append(Int(offset))
        }
        first = types.first ?? 0
        offsets = indices.map { types[$0] }
        return reader.skip(header.size(ofTime: size) - header.times * (size + 1) - header.types * 6)
    }

    /// The offset at an instant, in seconds east of UTC.
    package func offset(at seconds: Int64) -> Int {
        var (low, high) = (0, transitions.count)
        while low < high {
            let middle = (low + high) / 2
            if transitions[middle] <= seconds { low = middle + 1 } else { high = middle }
        }
        if low == transitions.count, let rule { return rule.offset(at: seconds) }
        return low == 0 ? first : offsets[low - 1]
    }

    /// The local time at an instant.
    func local(at seconds: Int64) -> CivilTime { CivilTime(seconds: seconds + Int64(offset(at: seconds))) }

    /// The instant of a local time, in seconds since 1970. Of two instants it is the first; a local time that is
    /// skipped is moved to after the gap, as mktime(3) does.
    ///
    /// - Parameter after: a local time that occurs twice is the second instant if the first is not after this.
    func instant(of time: CivilTime, after: Int64 = .min) -> Int64 {
        let seconds = time.seconds
        // No offset is longer than 26 hours, and offsets change at most once in such a time.
        let before = offset(at: seconds - 27 * 3600)
        let later = offset(at: seconds + 27 * 3600)
        let candidates = [seconds - Int64(max(before, later)), seconds - Int64(min(before, later))]
        let valid = candidates.filter { $0 + Int64(offset(at: $0)) == seconds }
        return valid.first { $0 > after } ?? valid.last ?? seconds - Int64(before)
    }
}

/// The header of a part of the file.
private struct Header {
    let version: Int
    let isUTCs, isStandards, leaps, times, types, characters: Int

    init?(_ reader: inout Reader) {
        guard reader.take(4)?.elementsEqual("TZif".utf8) == true, let version = reader.byte(), reader.skip(15) else {
            return nil
        }
        // The first version is a zero byte, the others are digits.
        self.version = version == 0 ? 1 : Int(version) - 0x30
        var counts: [Int] = []
        for _ in 0..<6 {
            guard let count = reader.number(4), (0...Int64(TimeZoneRules.maximumSize)).contains(count) else {
                return nil
            }
            counts.append(Int(count))
        }
        (isUTCs, isStandards, leaps, times, types, characters) = (
            counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]
        )
    }

    /// The size of the part behind the header, in bytes.
    func size(ofTime size: Int) -> Int {
        times * (size + 1) + types * 6 + characters + leaps * (size + 4) + isStandards + isUTCs
    }
}

/// Reads bytes in their order.
private struct Reader {
    let bytes: [UInt8]
    var position = 0

    mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, bytes.count - position >= count else { return nil }
        defer { position += count }
        return bytes[position..<(position + count)]
    }

    mutating func skip(_ count: Int) -> Bool { take(count) != nil }
    mutating func byte() -> UInt8? { take(1)?.first }

    /// A signed number, the highest byte first.
    mutating func number(_ size: Int) -> Int64? {
        guard let bytes = take(size), let top = bytes.first else { return nil }
        return bytes.reduce(top >= 0x80 ? -1 : 0) { $0 << 8 | Int64($1) }
    }

    /// The text between two line feeds at the end.
    mutating func footer() -> String? {
        guard byte() == 0x0A, let end = bytes[position...].firstIndex(of: 0x0A) else { return nil }
        return String(decoding: bytes[position..<end], as: UTF8.self)
    }
}

/// The rule of a time zone in the form of POSIX: `CET-1CEST,M3.5.0,M10.5.0/3` (RFC 8536, 3.3).
private struct DaylightRule: Hashable, Sendable {
    private struct Change: Hashable, Sendable {
        enum Day: Hashable, Sendable {
            /// A weekday (0 is Sunday) of the n-th week of a month; week 5 is the last.
            case weekday(month: Int, week: Int, day: Int)
            /// A day of the year from 1 on; 29 February is not counted.
            case julian(Int)
            /// A day of the year from 0 on.
            case ordinal(Int)
        }
        var day: Day
        /// The local time of the change, in seconds after midnight.
        var time = 2 * 3600

        /// The local time in a year, in seconds since 1970.
        func seconds(in year: Int) -> Int64 {
            let start = CivilTime.days(year: year, month: 1, day: 1)
            let days: Int
            switch day {
            case .julian(let number):
                let isLeap = CivilTime.length(ofMonth: 2, year: year) == 29
                days = start + number - 1 + (isLeap && number >= 60 ? 1 : 0)
            case .ordinal(let number): days = start + number
            case .weekday(let month, let week, let weekday):
                let first = CivilTime.days(year: year, month: month, day: 1)
                // In CivilTime, 0 is Monday.
                var day = (weekday + 6 - CivilTime.weekday(ofDay: first) + 7) % 7 + (week - 1) * 7
                while day >= CivilTime.length(ofMonth: month, year: year) { day -= 7 }
                days = first + day
            }
            return Int64(days) * 86_400 + Int64(time)
        }
    }

    private var standard: Int
    private var daylight: (offset: Int, start: Change, end: Change)? {
        guard let daylightOffset, let start, let end else { return nil }
        return (daylightOffset, start, end)
    }
    private var daylightOffset: Int?
    private var start: Change?
    private var end: Change?

    init?(_ text: String) {
        var rest = text.utf8[...]
        guard Self.name(&rest), let offset = Self.time(&rest) else { return nil }
        standard = -offset
        guard !rest.isEmpty else { return }
        guard Self.name(&rest) else { return nil }
        daylightOffset = standard + 3600
        if rest.first != UInt8(ascii: ",") {
            guard let offset = Self.time(&rest) else { return nil }
            daylightOffset = -offset
        }
        guard let start = Self.change(&rest), let end = Self.change(&rest), rest.isEmpty else { return nil }
        (self.start, self.end) = (start, end)
    }

    func offset(at seconds: Int64) -> Int {
        guard let daylight else { return standard }
        let year = CivilTime(seconds: seconds + Int64(standard)).year
        let start = daylight.start.seconds(in: year) - Int64(standard)
        let end = daylight.end.seconds(in: year) - Int64(daylight.offset)
        let isDaylight = start < end ? start <= seconds && seconds < end : !(end <= seconds && seconds < start)
        return isDaylight ? daylight.offset : standard
    }

    // MARK: Parsing

    private typealias Rest = Substring.UTF8View

    private static func take(_ character: Character, from rest: inout Rest) -> Bool {
        guard rest.first == character.asciiValue else { return false }
        rest = rest.dropFirst()
        return true
    }

    private static func name(_ rest: inout Rest) -> Bool {
        if take("<", from: &rest) {
            guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
            rest = rest[end...].dropFirst()
            return true
        }
        let letters = rest.prefix { ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z") }
        rest = rest.dropFirst(letters.count)
        return letters.count >= 3
    }

    private static func number(_ rest: inout Rest, _ range: ClosedRange<Int>) -> Int? {
        let digits = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        rest = rest.dropFirst(digits.count)
        guard digits.count <= 4, let number = Int(String(decoding: digits, as: UTF8.self)), range.contains(number)
        else {
            return nil
        }
        return number
    }

    /// A time such as `-1`, `+5:30` or `26`, in seconds.
    private static func time(_ rest: inout Rest) -> Int? {
        let isNegative = take("-", from: &rest)
        if !isNegative { _ = take("+", from: &rest) }
        guard let hours = number(&rest, 0...167) else { return nil }
        var seconds = hours * 3600
        for unit in [60, 1] {
            guard take(":", from: &rest) else { break }
            guard let part = number(&rest, 0...59) else { return nil }
            seconds += part * unit
        }
        return isNegative ? -seconds : seconds
    }

    private static func change(_ rest: inout Rest) -> Change? {
        guard take(",", from: &rest) else { return nil }
        var change: Change
        if take("M", from: &rest) {
            guard let month = number(&rest, 1...12), take(".", from: &rest), let week = number(&rest, 1...5),
                take(".", from: &rest), let day = number(&rest, 0...6)
            else { return nil }
            change = Change(day: .weekday(month: month, week: week, day: day))
        } else if take("J", from: &rest) {
            guard let day = number(&rest, 1...365) else { return nil }
            change = Change(day: .julian(day))
        } else {
            guard let day = number(&rest, 0...365) else { return nil }
            change = Change(day: .ordinal(day))
        }
        if take("/", from: &rest) {
            guard let time = time(&rest) else { return nil }
            change.time = time
        }
        return change
    }
}
