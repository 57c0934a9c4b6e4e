import FreshetModel
import FreshetPipelines

/// The validators of one response, and whether they can show a later change (RFC 9110, 8.8.2.2 and 8.8.3).
///
/// `Last-Modified` has a resolution of seconds: a file that is written twice within one second has the same date both
/// times. So the date is reliable only in a response that was made a while later, when a further version cannot have
/// the same date. Many servers make the entity tag of the same time, and such a tag is as unreliable as the date.
///
/// Validators are sent back with later requests, and a correct server always answers 304 to a date in the future and to
/// the tag `*` (RFC 9110, 13.1.2 and 13.1.3). So the local clock counts too, besides `Date`, and an entity tag must be
/// valid.
struct ResponseValidators: Hashable, Sendable {
    /// The unchanged `ETag` field, with its quotes and `W/`.
    var entityTag: String?
    /// The unchanged `Last-Modified` field.
    var lastModified: String?
    /// The unchanged `Date` field.
    var date: String?

    /// The number of seconds by which `Date` must be later than `Last-Modified`. One second would be enough with one
    /// clock; a minute also covers a file server with another clock than the web server (RFC 9110, 8.8.2.2).
    static let settlingTime: Int64 = 60
    /// The most bytes of an entity tag that is kept: usual tags have 20 to 100. Content with a longer tag is fetched
    /// without a condition.
    static let longestTag = 1_024
    /// The most bytes of a date that is kept: an HTTP date has 29.
    static let longestDate = 64

    /// The validators that a later request may use.
    ///
    /// - Parameter received: when the head of the response arrived, in wall-clock seconds since 1970. The earlier of
    ///   this time and `Date` counts, so that a `Date` in the future has no effect. A local clock that is behind needs
    ///   no tolerance: a date that is not used yet only costs a request without conditions, and is used a minute later.
    func usable(received: Int64) -> Validators {
        // The length is limited, because the index stores a tag for each of many branches.
        let tag = entityTag.flatMap { Self.isEntityTag($0) && $0.utf8.count <= Self.longestTag ? $0 : nil }
        guard let lastModified, lastModified.utf8.count <= Self.longestDate,
            let modified = HTTPDate.seconds(lastModified)
        else { return Validators(entityTag: tag) }
        if isSettled(modified, received) { return Validators(entityTag: tag, lastModified: lastModified) }
        return Validators(entityTag: tag.flatMap { Self.isMade(of: modified, $0) ? nil : $0 })
    }

    private func isSettled(_ modified: Int64, _ received: Int64) -> Bool {
        let made = min(date.flatMap(HTTPDate.seconds) ?? received, received)
        let (age, overflow) = made.subtractingReportingOverflow(modified)
        return !overflow && age >= Self.settlingTime
    }

    /// Stored validators without those that must not be sent: invalid entity tags, and dates in the future.
    ///
    /// - Parameter now: wall-clock time in seconds since 1970.
    static func sendable(_ validators: Validators, now: Int64) -> Validators {
        Validators(
            entityTag: validators.entityTag.flatMap { isEntityTag($0) ? $0 : nil },
            lastModified: validators.lastModified.flatMap { date in
                HTTPDate.seconds(date).flatMap { $0 <= now ? date : nil }
            })
    }

    /// Whether a 304 with these validators is for other content than the request: its entity tag differs by the weak
    /// comparison (RFC 9110, 8.8.3.2) or, if a tag is missing, its date is later.
    func areOthers(than asked: Validators) -> Bool {
        if let tag = entityTag, let asked = asked.entityTag { return Self.opaque(tag) != Self.opaque(asked) }
        guard let modified = lastModified.flatMap(HTTPDate.seconds),
            let asked = asked.lastModified.flatMap(HTTPDate.seconds)
        else { return false }
        return modified > asked
    }

    private static func opaque(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...] }

    /// Whether a text is one entity tag (RFC 9110, 8.8.3): in quotes, with `W/` before it if it is weak. `*` and a list
    /// of tags are not one tag.
    static func isEntityTag(_ text: String) -> Bool {
        let quoted = opaque(text).utf8
        guard quoted.count >= 2, quoted.first == UInt8(ascii: "\""), quoted.last == UInt8(ascii: "\"") else {
            return false
        }
        return quoted.dropFirst().dropLast().allSatisfy { $0 == 0x21 || (0x23...0x7E).contains($0) || $0 >= 0x80 }
    }

    /// Whether the tag contains this time as a number: nginx makes a tag of the time and the length, Apache of the
    /// length and the time in microseconds, other servers of milliseconds or nanoseconds, hexadecimal or decimal.
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
}
