import FreshetControl
import FreshetRender

/// Formats instants for the views of a command; all of them are relative to the same present.
struct Times {
    let now: Int64
    let timeZone: (Int64) -> (offset: Int64, name: String)

    /// Such as `3min 2s ago`.
    func relative(_ instant: Int64) -> String { TimeText.relative(instant, now: now) }

    /// Such as `Sat 2026-11-21 02:39:23 UTC; 3min 2s ago`.
    func both(_ instant: Int64) -> String { "\(absolute(instant)); \(past(instant))" }

    /// Such as `3min 2s ago` or `just now`.
    func past(_ instant: Int64) -> String {
        let text = relative(instant)
        return text == "now" ? "just now" : text
    }

    func absolute(_ instant: Int64) -> String {
        let zone = timeZone(instant)
        return TimeText.absolute(instant, offset: zone.offset, zone: zone.name)
    }

    func timeOfDay(_ instant: Int64) -> String {
        TimeText.timeOfDay(instant, offset: timeZone(instant).offset)
    }

    /// The reason of a refusal, and the time at which to try again.
    func retryHint(_ hint: TryLaterHint) -> String {
        let until = hint.until.map { ", until \(absolute($0)) (\(relative($0)))" } ?? ""
        return DisplayText.harmless(hint.reason) + until
    }
}

/// `1 error`, `2 errors`.
enum Count {
    static func text(_ count: some BinaryInteger, _ noun: String) -> String {
        "\(count) \(noun)\(count == 1 ? "" : "s")"
    }
}
