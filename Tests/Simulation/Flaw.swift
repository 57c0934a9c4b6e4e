/// What can be wrong with a machine, on purpose: for each thing that the witness looks for, something that it must see.
enum Flaw: CaseIterable {
    /// Changes of files are not passed on.
    case losesFiles
    /// A person who comes is not noticed.
    case losesForeground
    /// A run under way is taken for the answer to what is heard meanwhile.
    case losesWhileRunning
    case firesTwice
    /// That the network is gone is not told.
    case ignoresLoss
    /// Storms are not waited for.
    case ignoresQuiet
    case ignoresInterval
    /// Checks by the clock come in half of the time.
    case hastens
    /// Timers ring before the wake is told.
    case ringsBeforeWake
    /// logind's word is taken for another wake.
    case wakesTwice
    case ignoresSleep
    case forgetsRetryAfter
    /// Restarted, it has lost its copies.
    case losesCopies
    case acceptsAll
    /// A commit that changes nothing.
    case keepsOldBytes
    /// Nobody hears of wishes for further pages.
    case losesWishes
    /// Whoever wants a further page gets a check.
    case checksForPages
    /// What a further page brings is remembered as a check.
    case takesPagesForChecks
    /// Two engines work at one pipeline.
    case runsTwice
    case leavesTask

    /// What the witness says of it.
    var symptoms: [String] {
        switch self {
        case .losesFiles, .losesForeground, .losesWhileRunning: ["was forgotten", "has the causes"]
        case .firesTwice: ["has the causes"]
        case .ignoresLoss: ["while the network is away"]
        case .ignoresQuiet: ["runs for a storm"]
        case .ignoresInterval: ["before min-interval is over"]
        case .hastens: ["before it is due"]
        case .ringsBeforeWake: ["before the wake is told"]
        case .wakesTwice: ["one wake fires twice"]
        case .ignoresSleep: ["starts before the sleep"]
        case .forgetsRetryAfter: ["wants to be left alone"]
        case .losesCopies: ["is offered after"]
        case .acceptsAll: ["was let through"]
        case .keepsOldBytes: ["and not what the origin said"]
        case .losesWishes: ["pages that are wanted"]
        case .checksForPages: ["has the causes", "and run"]
        case .takesPagesForChecks: ["taken for one"]
        case .runsTwice: ["is under way", "starts after run", "requests at once"]
        case .leavesTask: ["is left"]
        }
    }
}
