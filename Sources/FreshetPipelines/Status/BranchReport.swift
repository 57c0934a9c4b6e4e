/// What is the matter with a pipeline's branches.
package struct BranchReport: Hashable, Sendable {
    /// How many the last run had.
    package var total: Int
    /// How many of them failed.
    package var failed: Int
    /// The first of those that failed, at most ``mostShown``.
    package var failing: [FailingBranch]

    /// More is read by nobody.
    package static let mostShown = 16
}

/// A branch that fails.
package struct FailingBranch: Hashable, Sendable {
    /// The keys that lead to it.
    package var path: [String]
    package var failure: RunFailure
    /// When the first of its failures in a row was.
    package var since: ContinuousClock.Instant
    package var attempts: Int
}

/// Follows the branches of a pipeline from run to run.
struct BranchStatusTable {
    private var total = 0
    private var troubles: [FailingBranch] = []
    /// Why not all of the copy is new; nil: it is.
    private(set) var flaw: RunFailure?

    /// A run has made a copy.
    mutating func note(_ failures: [BranchFailure], of total: Int, at now: ContinuousClock.Instant) {
        self.total = total
        let before = Dictionary(troubles.map { ($0.path, $0) }) { first, _ in first }
        troubles = failures.map { branch in
            let known = before[branch.path]
            return FailingBranch(
                path: branch.path, failure: branch.failure, since: known?.since ?? now,
                attempts: (known?.attempts ?? 0) + 1)
        }
        flaw = failures.filter { !$0.isAccepted }.min { $0.failure.kind.rank < $1.failure.kind.rank }.map { worst in
            var flaw = worst.failure
            flaw.message =
                "\(failures.count) of \(total) branches failed, of which '\(BranchFailure.text(worst.path))': "
                + worst.failure.message
            // The key is content.
            flaw.quotesContent = true
            return flaw
        }
    }

    /// Nil if all is well.
    var report: BranchReport? {
        guard !troubles.isEmpty else { return nil }
        return BranchReport(
            total: total, failed: troubles.count, failing: Array(troubles.prefix(BranchReport.mostShown)))
    }
}

extension RunFailure.Kind {
    /// The sooner another attempt may help, the lower: the branches that it may help decide when it comes.
    fileprivate var rank: Int {
        switch self {
        case .connection: 0
        case .transient, .deadline, .local, .absent, .budget: 1
        case .certificateDate: 2
        case .content: 3
        case .refused: 4
        }
    }
}
