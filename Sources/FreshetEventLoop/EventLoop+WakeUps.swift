extension EventLoop {
    /// Has a handler run on the loop's thread at each wake-up: after the kernel was asked, before timers expire and
    /// before descriptors' handlers.
    ///
    /// It is for what must be known before anything else is done after a wake-up, such as that the machine slept. If
    /// the handler returns true, the jobs that are ready by then (those of tasks that it resumed, and what these resume
    /// in turn, up to `jobRoundsPerTurn` rounds) run before any timer expires.
    ///
    /// **Before any timer** is meant strictly: a timer expires only if it was due before the handler looked. Should the
    /// machine sleep between the look and the timers, those that became overdue in that sleep wait for the next turn,
    /// and so for the next look.
    ///
    /// The handler runs at every turn of the loop, some thousand times a second under load: a few clock reads are in
    /// place, a system call is not. A loop without observers spends nothing on them.
    ///
    /// - Parameter handler: returns whether what it set off has to run before timers expire.
    /// - Returns: the observation, which ends when it is cancelled or released.
    public func observeWakeUps(_ handler: @escaping @Sendable () -> Bool) -> WakeUpObservation {
        WakeUpObservation(loop: self, identifier: addWakeUpObserver(handler))
    }
}

/// A handler that runs at each wake-up of an ``EventLoop``. It ends when it is cancelled or released.
public final class WakeUpObservation: Sendable {
    private let loop: EventLoop
    private let identifier: UInt64

    init(loop: EventLoop, identifier: UInt64) {
        self.loop = loop
        self.identifier = identifier
    }

    /// Ends the observation. Called on the loop's thread outside of handlers, the handler does not run again; from
    /// elsewhere, the wake-up under way may still reach it.
    public func cancel() {
        loop.removeWakeUpObserver(identifier)
    }

    deinit { cancel() }
}
