/// Decides when to retry a bus that could not be connected, or was lost.
///
/// A missing socket needs no attempts: the connection waits until it appears, without wake-ups. So this is for a bus
/// that accepts the connection and ends it, or refuses it.
///
/// | case | action |
/// | --- | --- |
/// | a connection that lasted ``proof`` or longer is lost | retry after 0.25 s, 0.5 s, 1 s … 30 s, without end |
/// | no connection lasted that long | the same, ``unprovenAttempts`` times, then no more, so the machine stays idle |
struct BusReconnection: Sendable {
    typealias Instant = ContinuousClock.Instant

    static let firstPause: Duration = .milliseconds(250)
    static let longestPause: Duration = .seconds(30)
    /// How long a connection has to last to be a good one. A bus that does not accept this user ends a connection
    /// sooner (dbus-daemon and a unit with DynamicUser=, systemd issue 22737).
    static let proof: Duration = .seconds(5)
    /// With these pauses some 30 s: long enough for a bus that is being started.
    static let unprovenAttempts = 8

    private var readyAt: Instant?
    private var isProven = false
    private var attempts = 0

    /// The bus has accepted the connection.
    mutating func becameReady(at now: Instant) { readyAt = now }

    /// An attempt failed, or the connection was lost. Returns the pause before the next attempt, or nil for no more
    /// attempts.
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
