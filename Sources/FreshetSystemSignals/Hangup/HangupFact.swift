/// The SIGHUP signals so far.
public struct HangupFact: Hashable, Sendable, CustomStringConvertible {
    static let notBlocked =
        "SIGHUP is not blocked and ends the program; call SignalDescriptor.block([SIGHUP]) at the start of main, "
        + "before there are other threads"

    /// Whether the controlling terminal was closed.
    public var isTerminalClosed: Bool
    /// When a process last requested a reload; nil: never.
    public var reloadRequestedAt: ContinuousClock.Instant?
    /// Why SIGHUP is not received, and how to repair it, as a sentence for people. Nil: it is received.
    public var obstacle: String?

    /// Makes a fact, for tests.
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
            ? "the terminal was closed" : reloadRequestedAt == nil ? "no SIGHUP so far" : "a reload was requested"
    }
}
