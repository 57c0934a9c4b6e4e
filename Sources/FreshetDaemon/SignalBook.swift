import FreshetControl
import FreshetSignals
import Synchronization

/// How often each of the daemon's signals fired, and when and why last: what `freshetctl signals` shows.
final class SignalBook: Sendable {
    struct Entry: Hashable, Sendable {
        var fired: Int64 = 0
        /// Wall-clock microseconds since 1970.
        var last: Int64?
        var detail: String?
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let events: ControlEvents

    init(events: ControlEvents) {
        self.events = events
    }

    subscript(name: String) -> Entry {
        entries.withLock { $0[name] ?? Entry() }
    }

    /// Notes a firing and tells those who follow.
    ///
    /// - Parameters:
    ///   - row: what it is counted under, where one signal has several rows.
    ///   - pipeline: set if one pipeline alone listens to it.
    func note(_ signal: String, row: String? = nil, _ detail: String?, pipeline: String? = nil, count: Int = 1) {
        let now = WallClock.now
        let number = entries.withLock { entries -> Int64 in
            var entry = entries[row ?? signal] ?? Entry()
            entry.fired += Int64(count)
            entry.last = now
            entry.detail = detail
            entries[row ?? signal] = entry
            return entry.fired
        }
        events.publish(.signal(signal, number: number, detail: detail, pipeline: pipeline, at: now))
    }

    func status(_ name: String, fact: String, unavailable: String? = nil) -> SignalStatus {
        let entry = self[name]
        return SignalStatus(
            name: name, fact: fact, unavailable: unavailable, fired: entry.fired, lastFired: entry.last,
            lastDetail: entry.detail)
    }
}
