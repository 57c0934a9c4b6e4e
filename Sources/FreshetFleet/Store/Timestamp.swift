import FreshetModel
import Glibc

/// The time format of NATS (RFC 3339, in UTC).
enum Timestamp {
    /// Nil: it is not such a time.
    static func parse(_ text: String) -> WallTime? {
        let bytes = Array(text.utf8)
        guard (20...30).contains(bytes.count), bytes.last == UInt8(ascii: "Z") else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            guard bytes[range].allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            return bytes[range].reduce(0) { $0 * 10 + Int64($1 - 0x30) }
        }
        guard bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            bytes[10] == UInt8(ascii: "T"), bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"),
            let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19)
        else { return nil }
        var nanoseconds: Int64 = 0
        // `.` and up to nine digits.
        if bytes.count > 20 {
            let fraction = 20..<(bytes.count - 1)
            guard bytes[19] == UInt8(ascii: "."), !fraction.isEmpty, let digits = number(fraction) else { return nil }
            nanoseconds = (fraction.count..<9).reduce(digits) { value, _ in value * 10 }
        }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(year - 1_900), Int32(month - 1), Int32(day))
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (Int32(hour), Int32(minute), Int32(second))
        return WallTime(seconds: Int64(timegm(&parts))).advanced(by: .nanoseconds(nanoseconds))
    }

    /// The time in whole seconds, rounded down.
    static func text(_ time: WallTime) -> String {
        var (seconds, parts) = (time_t(time.microseconds / 1_000_000), tm())
        gmtime_r(&seconds, &parts)
        func padded(_ number: Int32, _ width: Int = 2) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(padded(parts.tm_year + 1_900, 4))-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday))"
            + "T\(padded(parts.tm_hour)):\(padded(parts.tm_min)):\(padded(parts.tm_sec))Z"
    }
}
