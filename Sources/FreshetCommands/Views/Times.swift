import FreshetControl
import FreshetRender

/// Instants as views show them, relative to one present for all of a command's output.
struct Times {
    let now: Int64
    let timeZone: (Int64) -> (offset: Int64, name: String)

    /// Such as `3min 2s ago`.
    func relative(_ instant: Int64) -> String { TimeText.relative(instant, now: now) }

    /// Such as `Sat 2026-11-21 02:39:23 UTC; 3min 2s ago`.
    func both(_ instant: Int64) -> String { "\(absolute(instant)); \(relative(instant))" }

    func absolute(_ instant: Int64) -> String {
        let zone = timeZone(instant)
        return TimeText.absolute(instant, offset: zone.offset, zone: zone.name)
    }

    func timeOfDay(_ instant: Int64) -> String {
        TimeText.timeOfDay(instant, offset: timeZone(instant).offset)
    }

    /// Why to wait, and until when.
    func patience(_ hint: TryLaterHint) -> String {
        let until = hint.until.map { ", until \(absolute($0)) (\(relative($0)))" } ?? ""
        return DisplayText.harmless(hint.reason) + until
    }
}

/// `1 fault`, `2 faults`.
enum Count {
    static func text(_ count: some BinaryInteger, _ noun: String) -> String {
        "\(count) \(noun)\(count == 1 ? "" : "s")"
    }
}
