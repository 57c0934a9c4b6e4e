/// What SIGHUP said so far: a fact that can be asked for at any time.
public struct HangupFact: Hashable, Sendable, CustomStringConvertible {
    static let notBlocked =
        "SIGHUP is not blocked, and ends the program: call SignalDescriptor.block([SIGHUP]) at the start of main, "
        + "before there are other threads"

    /// The controlling terminal was closed.
    public var isTerminalClosed: Bool
    /// When a process asked for a reload last; nil: none has.
    public var reloadRequestedAt: ContinuousClock.Instant?
    /// Why SIGHUP is not heard, and what helps: a sentence for people. Nil: it is.
    public var obstacle: String?

    /// Makes a fact by hand: for tests of what reads facts.
    public init(
        isTerminalClosed: Bool = false, reloadRequestedAt: ContinuousClock.Instant? = nil, obstacle: String? = nil
    ) {
        self.isTerminalClosed = isTerminalClosed
        self.reloadRequestedAt = reloadRequestedAt
        self.obstacle = obstacle
    }

    mutating func take(_ isFromKernel: Bool, at now: ContinuousClock.Instant) {
        if isFromKernel { isTerminalClosed = true } else { reloadRequestedAt = now }
    }

    /// For people, such as `the terminal was closed`.
    public var description: String {
        if let obstacle { return obstacle }
        return isTerminalClosed
            ? "the terminal was closed" : reloadRequestedAt == nil ? "quiet" : "a reload was asked for"
    }
}
