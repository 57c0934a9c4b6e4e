package import FreshetModel

/// The failing branches of a pipeline.
package struct BranchReport: Hashable, Sendable {
    /// The number of branches of the last run.
    package var total: Int
    /// The number of failed branches.
    package var failed: Int
    /// The first failed branches, at most ``mostShown``.
    package var failing: [FailingBranch]

    /// The most failed branches in a report.
    package static let mostShown = 16
}

/// A failing branch.
package struct FailingBranch: Hashable, Sendable {
    /// The keys on the path to the branch.
    package var path: [String]
    package var failure: RunFailure
    /// When the first of its consecutive failures was.
    package var since: BootInstant
    package var attempts: Int
}

/// Tracks the branches of a pipeline from run to run.
struct BranchStatusTable: Sendable {
    /// How many failing branches are followed, the first ones: each may have a key of a kilobyte.
    static let mostFollowed = 1_024

    private var total = 0
    private var failed = 0
    private var failing: [FailingBranch] = []
    /// Why a part of the copy is not new; nil: all of it is new.
    private(set) var flaw: RunFailure?

    /// Records the failures of a run that made a copy.
    mutating func record(_ failures: [BranchFailure], of total: Int, at now: BootInstant) {
        self.total = total
        let before = Dictionary(failing.map { ($0.path, $0) }) { first, _ in first }
        failed = failures.count
        failing = failures.prefix(Self.mostFollowed).map { branch in
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
            // The key is part of the content.
            flaw.quotesContent = true
            return flaw
        }
    }

    /// The report; nil if no branch fails.
    var report: BranchReport? {
        guard !failing.isEmpty else { return nil }
        return BranchReport(
            total: total, failed: failed, failing: Array(failing.prefix(BranchReport.mostShown)))
    }
}

extension RunFailure.Kind {
    /// Lower for failures that a retry may fix sooner: such branches decide when the retry comes.
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
