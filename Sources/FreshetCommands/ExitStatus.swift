/// The exit statuses of `freshetctl`; the names in parentheses are those of sysexits.h. Scripts rely on the numbers.
package enum ExitStatus: Int32, CaseIterable, Hashable, Sendable {
    case success = 0
    /// The request failed: a run failed, the pipeline does not exist, or the pipeline has no copy yet.
    case failure = 1
    /// The command line is wrong (EX_USAGE).
    case usage = 64
    /// There is nothing more to load (EX_NOINPUT).
    case nothingMore = 66
    /// The daemon does not run, or ended during the request (EX_UNAVAILABLE).
    case notRunning = 69
    /// The origin, a budget or the daemon allows the request only later (EX_TEMPFAIL).
    case tryLater = 75
    /// The user lacks the permission (EX_NOPERM).
    case notPermitted = 77
    /// The configuration has errors (EX_CONFIG).
    case configuration = 78
}

/// The failure of a verb.
package struct CommandFailure: Error, Hashable, Sendable {
    package var status: ExitStatus
    /// One or more lines for standard error; empty if the verb has printed the reason already.
    package var message: String

    package init(_ status: ExitStatus, _ message: String = "") {
        self.status = status
        self.message = message
    }
}
