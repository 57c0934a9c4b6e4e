internal import FreshetSignals

/// The callers that wait for the answer to a request, or for the end of a pipeline's runner. Each of them is resumed
/// once.
final class AnswerWaiters: Sendable {
    private struct State {
        var lastRequest: UInt64 = 0
        /// Takes no memory while nobody waits.
        var waiters: [UInt64: CheckedContinuation<RefreshAnswer, Never>] = [:]
        /// The callers that wait for the end of the runner.
        var closers: [CheckedContinuation<Void, Never>] = []
        var isClosed = false
    }

    private let state = Lock(State())

    /// Makes a request, and awaits its answer. If the task is cancelled or the runner ends, that is
    /// ``RefreshAnswer/stopped``.
    ///
    /// - Parameter request: makes the request with this number.
    func answer(_ request: @Sendable (UInt64) -> Void) async -> RefreshAnswer {
        let number = state.withLock { state in
            state.lastRequest += 1
            return state.lastRequest
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isClosed { state.waiters[number] = continuation }
                    return !state.isClosed
                }
                guard isOpen else { return continuation.resume(returning: .stopped) }
                // If the task was cancelled before there was a waiter, the cancellation handler has not answered it.
                if Task.isCancelled { return resume(number, with: .stopped) }
                request(number)
            }
        } onCancel: {
            resume(number, with: .stopped)
        }
    }

    /// Answers a request, unless its caller does not wait any more.
    func resume(_ request: UInt64, with answer: RefreshAnswer) {
        state.withLock { state in
            defer { if state.waiters.isEmpty { state.waiters = [:] } }
            return state.waiters.removeValue(forKey: request)
        }?.resume(returning: answer)
    }

    /// Awaits ``close()``.
    func closed() async {
        await withCheckedContinuation { closer in
            let isClosed = state.withLock { state in
                if !state.isClosed { state.closers.append(closer) }
                return state.isClosed
            }
            if isClosed { closer.resume() }
        }
    }

    /// The runner has ended: resumes all callers, and those that come later immediately.
    func close() {
        let (waiters, closers) = state.withLock { state in
            state.isClosed = true
            defer {
                state.waiters = [:]
                state.closers = []
            }
            return (state.waiters, state.closers)
        }
        for waiter in waiters.values { waiter.resume(returning: .stopped) }
        for closer in closers { closer.resume() }
    }
}
