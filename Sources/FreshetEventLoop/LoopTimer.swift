/// A timer of an ``EventLoop``: armed for an instant, it calls its handler once, on the loop's thread.
///
/// It may be armed again at any time, also from its own handler. Released, it is silent.
public final class LoopTimer: Sendable {
    private let loop: EventLoop
    private let identifier: TimerQueue.Identifier

    /// Makes a timer that is not armed.
    ///
    /// - Parameter name: what a log calls the handler if it is slow.
    public init(_ loop: EventLoop, named name: String = "timer", _ handler: @escaping @Sendable () -> Void) {
        self.loop = loop
        identifier = loop.makeTimer(name, handler)
    }

    /// Sets the one instant at which the handler is to run; one that has passed is due at once, on the loop's next turn.
    public func arm(at deadline: ContinuousClock.Instant) {
        loop.arm(identifier, at: deadline)
    }

    /// Takes the instant back. Called on the loop's thread, the handler does not run any more.
    public func disarm() {
        loop.disarm(identifier)
    }

    deinit { loop.removeTimer(identifier) }
}
