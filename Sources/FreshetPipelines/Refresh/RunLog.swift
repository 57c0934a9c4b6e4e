import FreshetModel

/// Counts runs.
struct RunLog: Sendable {
    typealias Instant = BootInstant

    var last: RunSummary?
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

    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }
}
