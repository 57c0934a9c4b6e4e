/// A timer of an ``EventLoop``: armed for an instant, it calls its handler once, on the loop's thread.
///
/// It may be armed again at any time, also in its own handler. A released timer does not fire.
public final class LoopTimer: Sendable {
    private let loop: EventLoop
    private let identifier: TimerQueue.Identifier

    /// Makes a timer that is not armed.
    ///
    /// - Parameters:
    ///   - loop: the loop on whose thread the handler runs.
    ///   - name: the name of the handler in logs if it is slow.
    ///   - handler: called when the timer is due.
    public init(_ loop: EventLoop, named name: String = "timer", _ handler: @escaping @Sendable () -> Void) {
        self.loop = loop
        identifier = loop.makeTimer(name, handler)
    }

    /// Arms the timer for an instant, which replaces an earlier one. An instant in the past is due in the loop's next
    /// iteration.
    public func arm(at deadline: ContinuousClock.Instant) {
        loop.arm(identifier, at: deadline)
    }

    /// Disarms the timer. If this is called on the loop's thread, the handler does not run any more.
    public func disarm() {
        loop.disarm(identifier)
    }

    deinit { loop.removeTimer(identifier) }
}
