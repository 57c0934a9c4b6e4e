/// Parses the dates in HTTP fields (RFC 9110, 5.6.7) to seconds since 1970.
///
/// curl_getdate(3) also accepts days that do not exist, and treats 31 February as 3 March.
enum HTTPDate {
    /// The most bytes of a text that is parsed: an HTTP date has at most 33.
    static let longest = 64

    /// - Returns: nil if the text is in none of the three formats, if the month does not have the day, and if the time
    ///   is before 1970. The day of the week is not compared with the date.
    static func seconds(_ text: String) -> Int64? {
        guard text.utf8.count <= longest else { return nil }
        if let usual = text.utf8.withContiguousStorageIfAvailable(usualForm), let usual { return usual }
        var words = text.utf8.split { $0 == 0x20 || $0 == 0x09 }.map { Array($0) }
        // Sunday, 06-Nov-94 08:49:37 GMT
        if words.count == 4 {
            let date = words[1].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).map { Array($0) }
            guard date.count == 3 else { return nil }
            words.replaceSubrange(1...1, with: date)
        }
        guard let weekday = words.first, weekday.count >= 3, weekday.dropLast().allSatisfy(isLetter) else { return nil }
        switch words.count {
        // Sun, 06 Nov 1994 08:49:37 GMT
        case 6 where weekday.last == UInt8(ascii: ","):
            let zone = String(decoding: words[5], as: UTF8.self).uppercased()
            guard zone == "GMT" || zone == "UTC" else { return nil }
            return seconds(day: words[1], month: words[2], year: words[3], time: words[4])
        // Sun Nov  6 08:49:37 1994
        case 5 where weekday.last.map(isLetter) == true:
            return seconds(day: words[2], month: words[1], year: words[4], time: words[3])
        default:
            return nil
        }
    }

    /// Parses the form that servers must send, `Sun, 06 Nov 1994 08:49:37 GMT`, without a copy: each answer has some dates.
    ///
    /// - Returns: nil for every other form, and for a date that does not exist.
    private static func usualForm(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
        guard text.count == 29, isLetter(text[0]), isLetter(text[1]), isLetter(text[2]), has(", ", in: text, at: 3),
            has(" ", in: text, at: 7), has(" ", in: text, at: 11), has(" ", in: text, at: 16),
            has(":", in: text, at: 19), has(":", in: text, at: 22), has(" GMT", in: text, at: 25),
            let day = number(text[5..<7]), let year = number(text[12..<16]), let hour = number(text[17..<19]),
            let minute = number(text[20..<22]), let second = number(text[23..<25]), hour < 24, minute < 60, second <= 60
        else { return nil }
        let month =
            switch (text[8] | 0x20, text[9] | 0x20, text[10] | 0x20) {
            case (0x6A, 0x61, 0x6E): 0
            case (0x66, 0x65, 0x62): 1
            case (0x6D, 0x61, 0x72): 2
            case (0x61, 0x70, 0x72): 3
            case (0x6D, 0x61, 0x79): 4
            case (0x6A, 0x75, 0x6E): 5
            case (0x6A, 0x75, 0x6C): 6
            case (0x61, 0x75, 0x67): 7
            case (0x73, 0x65, 0x70): 8
            case (0x6F, 0x63, 0x74): 9
            case (0x6E, 0x6F, 0x76): 10
            case (0x64, 0x65, 0x63): 11
            default: -1
            }
        return days(year, month, day).map { $0 * 86_400 + hour * 3_600 + minute * 60 + second }
    }

    private static func has(_ part: StaticString, in text: UnsafeBufferPointer<UInt8>, at start: Int) -> Bool {
        (0..<part.utf8CodeUnitCount).allSatisfy { text[start + $0] == part.utf8Start[$0] }
    }

    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    private static func seconds(day: [UInt8], month: [UInt8], year: [UInt8], time: [UInt8]) -> Int64? {
        let name = String(decoding: month, as: UTF8.self).lowercased()
        let clock = time.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard let month = months.firstIndex(of: name), let year = number(year, digits: [2, 4]),
            let day = number(day, digits: [1, 2]), clock.count == 3, let hour = number(clock[0], digits: [2]),
            let minute = number(clock[1], digits: [2]), let second = number(clock[2], digits: [2]),
            // A leap second is the second 60.
            hour < 24, minute < 60, second <= 60
        else { return nil }
        return days(fullYear(year), month, day).map { $0 * 86_400 + hour * 3_600 + minute * 60 + second }
    }

    /// Two digits mean a year from 1970 to 2069.
    private static func fullYear(_ year: Int64) -> Int64 {
        switch year {
        case ..<70: 2000 + year
        case ..<100: 1900 + year
        default: year
        }
    }

    /// The days of the year before each month, without a leap day; the last one is the length of the year.
    private static let daysBefore: [Int64] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365]

    /// Days since 1970 in the Gregorian calendar; nil if the day does not exist or is before 1970.
    private static func days(_ year: Int64, _ month: Int, _ day: Int64) -> Int64? {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        guard year >= 1970, daysBefore.indices.dropLast().contains(month) else { return nil }
        let leapDay: Int64 = isLeap && month == 1 ? 1 : 0
        guard (1...daysBefore[month + 1] - daysBefore[month] + leapDay).contains(day) else { return nil }
        let before = year - 1
        let leapDays = before / 4 - before / 100 + before / 400 - 477 + (isLeap && month > 1 ? 1 : 0)
        return (year - 1970) * 365 + leapDays + daysBefore[month] + day - 1
    }

    /// The number in a text that consists only of digits, with one of the given numbers of digits.
    private static func number(_ text: some Collection<UInt8>, digits: Set<Int>) -> Int64? {
        digits.contains(text.count) ? number(text) : nil
    }

    /// The number in at most 18 digits.
    private static func number(_ text: some Collection<UInt8>) -> Int64? {
        var number: Int64 = 0
        for byte in text {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            number = number * 10 + Int64(byte - UInt8(ascii: "0"))
        }
        return number
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
}
