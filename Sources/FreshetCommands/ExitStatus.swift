/// The exit statuses of `freshetctl`, from sysexits.h where that has one. Scripts rely on them.
package enum ExitStatus: Int32, CaseIterable, Hashable, Sendable {
    case success = 0
    /// What was asked for did not succeed: a run failed, there is no such pipeline, a pipeline has no copy yet.
    case failure = 1
    /// The command line is wrong (EX_USAGE).
    case usage = 64
    /// There is nothing more to load (EX_NOINPUT).
    case nothingMore = 66
    /// The daemon is not running, or went away (EX_UNAVAILABLE).
    case notRunning = 69
    /// The origin, a budget or the daemon asks for patience (EX_TEMPFAIL).
    case tryLater = 75
    /// This user may not do it (EX_NOPERM).
    case notPermitted = 77
    /// The configuration has faults (EX_CONFIG).
    case configuration = 78
}

/// Why a verb did not do what it was asked for.
package struct CommandFailure: Error, Hashable, Sendable {
    package var status: ExitStatus
    /// For people, one line or more; empty: what there was to say has been said.
    package var message: String

    package init(_ status: ExitStatus, _ message: String = "") {
        self.status = status
        self.message = message
    }
}
