import FreshetModel
internal import FreshetSignals

/// Decides which mirrors a run asks, and in which order, from the results of earlier runs.
///
/// | a mirror | the next run |
/// | --- | --- |
/// | worked | keeps its position |
/// | failed, or had not answered at the deadline, within ``failureMemory`` | asks it after all others; the one that failed longest ago first |
/// | sent `Retry-After` | does not ask it until then |
struct MirrorMachine: Sendable {
    typealias Instant = BootInstant

    /// What is known of one mirror.
    private struct Entry {
        /// The time until its answers began, as a moving average.
        var answerTime: Duration?
        var measured: Instant?
        /// The last failure, if nothing worked since.
        var failed: Instant?
        var retryAfter: Instant?
    }

    /// How long a mirror that failed is asked last: long enough that a mirror that is down costs few attempts, and
    /// short enough that the preferred one is soon used again.
    static let failureMemory: Duration = .seconds(600)
    /// After this time a measurement is repeated: networks change within a day.
    static let measurementMemory: Duration = .seconds(24 * 3600)
    /// Another mirror has to be this number of times faster than the one that worked last, since a change of the
    /// mirror costs an unconditional request.
    static let advantage = 2

    private var entries: [String: Entry] = [:]
    /// The URL of the mirror that worked last.
    private(set) var last: String?
    /// The URL of the mirror whose answer a run waits for.
    private var asked: String?
    private var epoch: UInt64 = 0

    /// The positions of the mirrors that a run asks, in order; empty: all of them have sent `Retry-After`.
    ///
    /// - Parameters:
    ///   - share: the fraction of this host and pipeline for ``Mirrors/Order/stable``: 0 or more, less than 1.
    ///   - epoch: the network epoch; failures on another network say nothing about this one.
    ///   - isForced: `Retry-After` does not count.
    mutating func plan(
        _ mirrors: Mirrors, share: Double, epoch: UInt64, isForced: Bool = false, at now: Instant
    ) -> [Int] {
        let urls = Set(mirrors.list.map(\.url))
        entries = entries.filter { urls.contains($0.key) }
        asked = nil
        if epoch != self.epoch {
            self.epoch = epoch
            for url in entries.keys { entries[url]?.failed = nil }
        }
        let order = preference(mirrors, share, now).filter { isForced || wait(for: mirrors.list[$0].url, now) == nil }
        func failure(_ index: Int) -> Instant? {
            entries[mirrors.list[index].url]?.failed.flatMap { now < $0.advanced(by: Self.failureMemory) ? $0 : nil }
        }
        let failed = order.enumerated().compactMap { position, index in
            failure(index).map { (at: $0, position: position, index: index) }
        }.sorted { ($0.at, $0.position) < ($1.at, $1.position) }
        return order.filter { failure($0) == nil } + failed.map(\.index)
    }

    /// How long the first of these mirrors asks for a pause (`Retry-After`), if all do; nil: one of them may be asked.
    func wait(_ mirrors: Mirrors, at now: Instant) -> Duration? {
        let waits = mirrors.list.map { wait(for: $0.url, now) }
        return waits.contains(nil) ? nil : waits.compactMap(\.self).min()
    }

    /// A run asks this mirror, until ``answered()``, ``worked(_:after:at:)`` or ``failed(_:retryAfter:at:)``.
    mutating func asks(_ url: String) { asked = url }

    /// The whole answer has arrived. What the run does with it does not depend on the mirror.
    mutating func answered() { asked = nil }

    /// The deadline has ended the run. A mirror whose answer had not arrived has failed: otherwise each run would wait
    /// for it again, and would never ask another one.
    mutating func ranLate(at now: Instant) {
        if let asked { failed(asked, retryAfter: nil, at: now) }
    }

    /// - Parameter time: the time until the answer began; nil: it was not measured.
    mutating func worked(_ url: String, after time: Duration?, at now: Instant) {
        var entry = entries[url] ?? Entry()
        if let time {
            // An old measurement says nothing.
            let isRecent = entry.measured.map { now < $0.advanced(by: Self.measurementMemory) } ?? false
            entry.answerTime = entry.answerTime.flatMap { isRecent ? ($0 * 3 + time) / 4 : nil } ?? time
            entry.measured = now
        }
        entry.failed = nil
        entry.retryAfter = nil
        entries[url] = entry
        last = url
        asked = nil
    }

    mutating func failed(_ url: String, retryAfter: Duration?, at now: Instant) {
        asked = nil
        var entry = entries[url] ?? Entry()
        entry.failed = now
        if let retryAfter, retryAfter > .zero {
            entry.retryAfter = now.advanced(by: min(retryAfter, Backoff.longestRetryAfter))
        }
        entries[url] = entry
    }

    private func wait(for url: String, _ now: Instant) -> Duration? {
        guard let until = entries[url]?.retryAfter, now < until else { return nil }
        return now.duration(to: until)
    }

    private func preference(_ mirrors: Mirrors, _ share: Double, _ now: Instant) -> [Int] {
        let listed = Array(mirrors.list.indices)
        switch mirrors.order {
        case .listed: return listed
        case .stable: return Self.permutation(of: listed.count, share)
        case .fastest:
            // A mirror without a measurement is asked first, so that it gets one.
            let times = mirrors.list.map { mirror -> Duration in
                guard let entry = entries[mirror.url], let time = entry.answerTime, let measured = entry.measured,
                    now < measured.advanced(by: Self.measurementMemory)
                else { return .zero }
                return mirror.url == last ? time / Self.advantage : time
            }
            return listed.sorted { (times[$0], $0) < (times[$1], $1) }
        }
    }

    /// The permutation that a fraction selects, by the digits of the fraction in the factorial number system: all
    /// permutations are equally frequent among hosts, so the hosts of a mirror that fails spread over the others.
    static func permutation(of count: Int, _ share: Double) -> [Int] {
        var left = Array(0..<count)
        var share = share
        var result: [Int] = []
        while !left.isEmpty {
            share *= Double(left.count)
            let index = min(Int(share), left.count - 1)
            share -= Double(index)
            result.append(left.remove(at: index))
        }
        return result
    }
}
