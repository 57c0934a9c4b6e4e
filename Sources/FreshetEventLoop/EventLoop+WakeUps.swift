extension EventLoop {
    /// Runs a handler on the loop's thread at each wake-up: after `epoll_wait` has returned, before timers expire and
    /// before descriptors' handlers.
    ///
    /// Use it for facts that must be known before anything else runs after a wake-up, such as that the machine slept.
    /// If the handler returns true, the jobs that are ready then (tasks that it resumed, and further tasks that these
    /// resume, up to `jobRoundsPerIteration` rounds) run before any timer expires.
    ///
    /// **Before any timer** holds strictly: a timer expires only if it was due before the handler ran. If the machine
    /// sleeps between the handler and the timers, timers that became due in that sleep wait for the next iteration, and
    /// for the next call of the handler.
    ///
    /// The handler runs in every iteration of the loop, some thousand times a second under load: it may read clocks,
    /// but should not make system calls. A loop without observers has no cost.
    ///
    /// - Parameter handler: Returns whether ready jobs have to run before timers expire.
    /// - Returns: The observation, which ends when it is cancelled or released.
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

    /// Ends the observation. If it is called on the loop's thread outside of handlers, the handler does not run again.
    /// Otherwise the wake-up in progress may still call it.
    public func cancel() {
        loop.removeWakeUpObserver(identifier)
    }

    deinit { cancel() }
}
