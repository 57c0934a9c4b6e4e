/// Deliberate defects of a machine: for each error that the witness looks for, a defect that it must detect.
enum Flaw: CaseIterable {
    /// Changes of files are not passed on.
    case losesFiles
    /// A new session of a person is not noticed.
    case losesForeground
    /// A run in progress counts as the answer to signals that come meanwhile.
    case losesWhileRunning
    case firesTwice
    /// The loss of the network is not reported.
    case ignoresLoss
    /// Bursts are not debounced.
    case ignoresQuiet
    case ignoresInterval
    /// Planned checks come in half of the time.
    case hastens
    /// Timers fire before the wake is reported.
    case firesBeforeWake
    /// A message of logind counts as another wake.
    case wakesTwice
    case ignoresSleep
    case ignoresMetered
    case forgetsRetryAfter
    /// After a restart the copies are lost.
    case losesCopies
    case acceptsAll
    /// A commit that changes nothing.
    case keepsOldBytes
    /// Requests for further pages are lost.
    case losesPageRequests
    /// A request for a further page gets a check.
    case checksForPages
    /// A further page is stored as a check.
    case takesPagesForChecks
    /// Two engines work at one pipeline.
    case runsTwice
    case leavesTask

    /// The error that the witness reports.
    var symptoms: [String] {
        switch self {
        case .losesFiles, .losesForeground, .losesWhileRunning: ["was forgotten", "has the causes"]
        case .firesTwice: ["has the causes"]
        case .ignoresLoss: ["while the network is away"]
        case .ignoresQuiet: ["runs for a burst"]
        case .ignoresInterval: ["before min-interval is over"]
        case .hastens: ["before it is due"]
        case .firesBeforeWake: ["before the wake is reported"]
        case .wakesTwice: ["one wake fires twice"]
        case .ignoresSleep: ["starts before the sleep"]
        case .ignoresMetered: ["on a metered connection"]
        case .forgetsRetryAfter: ["in spite of Retry-After"]
        case .losesCopies: ["is published after"]
        case .acceptsAll: ["was let through"]
        case .keepsOldBytes: ["and not what the origin sent"]
        case .losesPageRequests: ["unanswered page requests"]
        case .checksForPages: ["has the causes", "but run"]
        case .takesPagesForChecks: ["counts as one"]
        case .runsTwice: ["is in progress", "starts after run", "concurrent requests"]
        case .leavesTask: ["is left"]
        }
    }
}
