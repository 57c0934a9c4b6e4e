/// Decides what happens to newcomers when the process has no descriptor left for them.
///
/// A connection that gave way keeps its descriptor until its task has ended. On a busy machine, a crowd of newcomers
/// arrives faster than those tasks end, so newcomers wait for these descriptors before they are turned away.
struct DescriptorShortage {
    enum Action: Equatable {
        /// Leave the newcomers in the kernel's queue, and accept again when a connection that gave way has ended, or
        /// after a pause.
        case wait
        /// Accept a newcomer and close its connection.
        case turnAway
    }

    /// How many pauses in a row newcomers wait, if no connection that gave way ends: a handler may ignore that its
    /// caller is gone.
    static let pausesInARow = 8

    private var departing = 0
    private var pauses = 0
    private var isWaiting = false

    /// Notes that a connection gives way.
    mutating func connectionGivesWay() {
        departing += 1
    }

    /// Notes that a connection that gave way has ended. Returns whether newcomers wait for its descriptor.
    mutating func connectionEnded() -> Bool {
        departing -= 1
        pauses = 0
        defer { isWaiting = false }
        return isWaiting
    }

    /// Notes that there was a descriptor for a newcomer.
    mutating func newcomerAccepted() {
        (pauses, isWaiting) = (0, false)
    }

    /// There is no descriptor for a newcomer.
    mutating func newcomerFailed() -> Action {
        guard departing > 0, pauses < Self.pausesInARow else { return .turnAway }
        pauses += 1
        isWaiting = true
        return .wait
    }
}
