import FreshetModel

/// Decides when the reports of a member's copies are stored.
///
/// A report is stored when it changes, after a delay at this member's place: so a change of ten thousand members does not
/// become ten thousand messages in one second. A failure, which may halt a roll-out, is reported within a second. A report
/// that is not stored again for eight days ends, because its member is gone.
struct ReportSchedule {
    typealias Instant = ContinuousClock.Instant

    /// The reports of all members in a second.
    private static let rate = 200.0
    private static let longestDelay: Duration = .seconds(60)
    static let lifetime: Duration = .seconds(8 * 86_400)
    static let renewal: Duration = .seconds(86_400)

    private struct Entry {
        var report: FleetReport
        /// When it is stored; nil: it is stored.
        var due: Instant?
    }

    private var entries: [FleetKey: Entry] = [:]
    /// The place of the member among all, from 0 to 1.
    private let place: Double
    private var renewed: Instant
    /// When ``take(_:)`` has to be called.
    private(set) var next: Instant

    init(place: Double, at now: Instant) {
        self.place = place
        renewed = now
        next = now + Self.renewal
    }

    /// - Parameter members: how many members report the same change, as far as it is known.
    mutating func set(_ key: FleetKey, _ report: FleetReport, members: UInt32, at now: Instant) {
        guard entries[key]?.report != report else { return }
        let pace = min(Self.longestDelay, .seconds(1) * (Double(members) / Self.rate))
        plan(key, report, now + (report.failure == nil ? pace : .seconds(1)) * place)
    }

    private mutating func plan(_ key: FleetKey, _ report: FleetReport, _ due: Instant) {
        entries[key] = Entry(report: report, due: due)
        next = min(next, due)
    }

    mutating func remove(_ key: FleetKey) { entries[key] = nil }

    /// A report was stored, or could not be.
    mutating func sent(_ key: FleetKey, _ report: FleetReport, isStored: Bool, at now: Instant) {
        guard entries[key]?.report == report else { return }
        if isStored { entries[key]?.due = nil } else { plan(key, report, now + Self.longestDelay) }
    }

    /// The reports that are stored now, and whether the state of the member itself is stored again.
    mutating func take(_ now: Instant) -> (reports: [(key: FleetKey, report: FleetReport)], renews: Bool) {
        let renews = now >= renewed + Self.renewal
        if renews {
            renewed = now
            let due = now + Self.longestDelay * place
            for key in Array(entries.keys) where entries[key]?.due == nil { entries[key]?.due = due }
        }
        let reports = entries.filter { $0.value.due.map { now >= $0 } ?? false }
        // Until they are known to be stored.
        for key in reports.keys { entries[key]?.due = now + Self.longestDelay }
        next = entries.values.compactMap(\.due).reduce(renewed + Self.renewal, min)
        return (reports.map { ($0.key, $0.value.report) }, renews)
    }
}
