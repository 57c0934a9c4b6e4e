import CCurl
import FreshetPipelines

/// The validators of one response, and whether they can show a later change (RFC 9110, 8.8.2.2 and 8.8.3).
///
/// `Last-Modified` counts whole seconds: a file that is written twice within one second has the same date both times. So the
/// date is evidence only in a response that was made a good while later, when no further version can have the same date.
/// Many servers make the entity tag of the same time, and such a tag is no better than the date.
struct ResponseValidators: Hashable, Sendable {
    /// The `ETag` field as it came, with its quotes and `W/`.
    var entityTag: String?
    /// The `Last-Modified` field as it came.
    var lastModified: String?
    /// The `Date` field as it came.
    var date: String?

    /// Seconds by which `Date` has to be later than `Last-Modified`. One would do if both came from one clock; a minute
    /// also covers a file server whose clock is not the web server's (RFC 9110, 8.8.2.2).
    static let settlingTime: Int64 = 60
    /// Bytes of an entity tag that is kept: servers make 20 to 100. Content with a longer one is fetched unconditionally.
    static let longestTag = 1_024
    /// Bytes of a date that is kept: HTTP's has 29.
    static let longestDate = 64

    /// The validators that a later request may use.
    ///
    /// - Parameter received: when the response came: wall-clock seconds since 1970. It counts for a response without a
    ///   `Date` that can be read; nil: then nothing counts, and the date is no evidence.
    func usable(received: Int64?) -> Validators {
        var short = self
        // Many branches have one each, and the index keeps them.
        if let tag = entityTag, tag.utf8.count > Self.longestTag { short.entityTag = nil }
        if let date = lastModified, date.utf8.count > Self.longestDate { short.lastModified = nil }
        return short.usableOfAnyLength(received: received)
    }

    private func usableOfAnyLength(received: Int64?) -> Validators {
        guard let modified = lastModified.flatMap(Self.seconds) else { return Validators(entityTag: entityTag) }
        if isSettled(modified, received) { return Validators(entityTag: entityTag, lastModified: lastModified) }
        return Validators(entityTag: entityTag.flatMap { Self.isMade(of: modified, $0) ? nil : $0 })
    }

    private func isSettled(_ modified: Int64, _ received: Int64?) -> Bool {
        guard let made = date.flatMap(Self.seconds) ?? received else { return false }
        let (age, overflow) = made.subtractingReportingOverflow(modified)
        return !overflow && age >= Self.settlingTime
    }

    /// Whether the tag contains this time as a number: nginx makes it of the time and the length, Apache of the length and
    /// the time in microseconds, others of milliseconds or nanoseconds, hexadecimal or decimal.
    private static func isMade(of modified: Int64, _ tag: String) -> Bool {
        guard modified > 0, let modified = UInt64(exactly: modified) else { return false }
        func isTime(_ digits: Substring.UTF8View, radix: Int) -> Bool {
            guard let number = UInt64(Substring(digits), radix: radix) else { return false }
            return [1, 1_000, 1_000_000, 1_000_000_000].contains { number / $0 == modified }
        }
        return tag.utf8.split { !isHexDigit($0) }.contains {
            isTime($0, radix: 16) || isTime($0, radix: 10)
        }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    /// Seconds since 1970; nil for what is no date.
    private static func seconds(of field: String) -> Int64? {
        let seconds = curl_getdate(field, nil)
        return seconds >= 0 ? Int64(seconds) : nil
    }
}
