/// When a bus that could not be connected to, or was lost, is tried again.
///
/// A socket that is not there needs no attempts: its appearance is waited for, without a wake-up. So this is for a bus
/// that takes the connection and ends it, or refuses it.
///
/// | | then |
/// | --- | --- |
/// | a connection that lasted ``proof`` or longer is lost | tried again after 0.25 s, 0.5 s, 1 s … 30 s, without end |
/// | none ever lasted so long | the same, ``unprovenAttempts`` times; then no more: it is not meant to be, and to try for ever would wake an idle machine |
struct BusReconnection: Sendable {
    typealias Instant = ContinuousClock.Instant

    static let firstPause: Duration = .milliseconds(250)
    static let longestPause: Duration = .seconds(30)
    /// How long a connection has to last to be a good one. A bus that does not want us drops us sooner (dbus-daemon and
    /// a unit with DynamicUser=, systemd issue 22737).
    static let proof: Duration = .seconds(5)
    /// With these pauses some 30 s: a bus that is being started has come up by then.
    static let unprovenAttempts = 8

    private var readyAt: Instant?
    private var isProven = false
    private var attempts = 0

    /// The bus has taken us.
    mutating func becameReady(at now: Instant) { readyAt = now }

    /// An attempt failed, or the connection was lost. Returns after which pause to try again, or nil: no more.
    mutating func ended(at now: Instant) -> Duration? {
        if let readyAt, now - readyAt >= Self.proof {
            isProven = true
            attempts = 0
        }
        readyAt = nil
        attempts += 1
        guard isProven || attempts < Self.unprovenAttempts else { return nil }
        // 2^7 × 0.25 s is more than the longest pause.
        return min(Self.firstPause * (1 << min(attempts - 1, 7)), Self.longestPause)
    }
}
