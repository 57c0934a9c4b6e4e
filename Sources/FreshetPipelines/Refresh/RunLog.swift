import FreshetModel

/// Counts runs.
struct RunLog: Sendable {
    typealias Instant = BootInstant

    private(set) var last: RunSummary?
    private(set) var lastNumber: UInt64
    var lastStart: Instant?
    var lastPermit: UInt64 = 0
    /// Consecutive superseded runs.
    var superseded = 0

    /// - Parameters:
    ///   - last: the last run before a restart.
    ///   - lastNumber: its number.
    init(last: RunSummary?, lastNumber: UInt64) {
        self.last = last
        self.lastNumber = lastNumber
    }

    /// A run has ended.
    ///
    /// The list of its causes is copied to the memory of the list before. The new list lies between blocks that the run
    /// frees, and would keep their page from going back to the system.
    mutating func ended(_ summary: RunSummary) {
        var causes = last?.causes ?? []
        // `causes` is the only reference now.
        last = nil
        causes.removeAll(keepingCapacity: true)
        causes += summary.causes
        last = summary
        last?.causes = causes
    }

    /// The mirror that a run asked last; it may have been followed by another run.
    mutating func record(mirror: String?, of run: UInt64) {
        if last?.run == run { last?.mirror = mirror }
    }

    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }
}
