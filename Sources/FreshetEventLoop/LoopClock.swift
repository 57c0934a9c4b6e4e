import Synchronization

/// A clock whose sleeps are timers of an ``EventLoop``: it needs no other thread.
///
/// Its instants are those of `ContinuousClock`: CLOCK_BOOTTIME on Linux, which continues while the machine sleeps.
public struct LoopClock: Clock, Sendable {
    public typealias Instant = ContinuousClock.Instant
    public typealias Duration = Swift.Duration

    let loop: EventLoop

    public var now: Instant { .now }
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Suspends until the deadline. Throws `CancellationError` if the task is cancelled before.
    ///
    /// - Parameters:
    ///   - deadline: When to continue; a deadline in the past is due immediately.
    ///   - tolerance: Ignored; the kernel's timer slack applies.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let sleep = Sleep()
        let timer = LoopTimer(loop) { sleep.end(cancelled: false) }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                if sleep.begin(continuation) { timer.arm(at: deadline) }
            }
        } onCancel: {
            sleep.end(cancelled: true)
        }
        withExtendedLifetime(timer) {}
    }
}

/// One sleep: the first of deadline and cancellation resumes it.
private final class Sleep: Sendable {
    private enum State {
        case idle, cancelled, ended
        case sleeping(CheckedContinuation<Void, any Error>)
    }
    private let state = Mutex(State.idle)

    /// Returns false if the task had been cancelled before it could sleep.
    func begin(_ continuation: CheckedContinuation<Void, any Error>) -> Bool {
        let sleeps = state.withLock { state -> Bool in
            switch state {
            case .idle:
                state = .sleeping(continuation)
                return true
            case .cancelled, .ended, .sleeping:  // it begins once, so only a cancellation came first
                return false
            }
        }
        if !sleeps { continuation.resume(throwing: CancellationError()) }
        return sleeps
    }

    func end(cancelled: Bool) {
        let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            switch state {
            case .idle:
                state = .cancelled
                return nil
            case .sleeping(let continuation):
                state = .ended
                return continuation
            case .cancelled, .ended:
                return nil
            }
        }
        if cancelled {
            continuation?.resume(throwing: CancellationError())
        } else {
            continuation?.resume()
        }
    }
}
