internal import FreshetSignals

/// The callers that wait for the answer to a request, or for the end of a pipeline's runner. Each of them is resumed
/// once.
///
/// The methods only change the value, under the lock of the runner. The caller resumes whom they return, without the
/// lock.
struct AnswerWaiters {
    typealias Waiter = CheckedContinuation<RefreshAnswer, Never>

    private var lastRequest: UInt64 = 0
    /// Takes no memory while nobody waits.
    private var waiters: [UInt64: Waiter] = [:]
    /// The callers that wait for the end of the runner.
    private var closers: [CheckedContinuation<Void, Never>] = []
    private var isClosed = false

    /// The number of a new request.
    mutating func newRequest() -> UInt64 {
        lastRequest += 1
        return lastRequest
    }

    /// Adds the caller of a request; returns false if the runner has ended, so that nobody will answer.
    mutating func add(_ waiter: Waiter, to request: UInt64) -> Bool {
        if !isClosed { waiters[request] = waiter }
        return !isClosed
    }

    /// Takes the caller of a request; nil: it does not wait any more.
    mutating func take(_ request: UInt64) -> Waiter? {
        defer { if waiters.isEmpty { waiters = [:] } }
        return waiters.removeValue(forKey: request)
    }

    /// Adds a caller that waits for ``close()``; returns false if that has happened.
    mutating func add(_ closer: CheckedContinuation<Void, Never>) -> Bool {
        if !isClosed { closers.append(closer) }
        return !isClosed
    }

    /// The runner has ended: takes all callers, and accepts no more.
    mutating func close() -> (waiters: [Waiter], closers: [CheckedContinuation<Void, Never>]) {
        isClosed = true
        defer {
            waiters = [:]
            closers = []
        }
        return (Array(waiters.values), closers)
    }
}

extension PipelineRunner {
    /// Makes a request, and awaits its answer. If the task is cancelled or the runner ends, that is
    /// ``RefreshAnswer/stopped``.
    ///
    /// - Parameter request: makes the request with this number.
    func answer(_ request: @Sendable (UInt64) -> Void) async -> RefreshAnswer {
        let number = state.withLock { $0.waiters.newRequest() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { $0.waiters.add(continuation, to: number) }
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
        state.withLock { $0.waiters.take(request) }?.resume(returning: answer)
    }

    /// Awaits the end of the runner.
    func closed() async {
        await withCheckedContinuation { closer in
            let isOpen = state.withLock { $0.waiters.add(closer) }
            if !isOpen { closer.resume() }
        }
    }

    /// The runner has ended: resumes all callers, and those that come later immediately.
    func closeWaiters() {
        let (waiters, closers) = state.withLock { $0.waiters.close() }
        for waiter in waiters { waiter.resume(returning: .stopped) }
        for closer in closers { closer.resume() }
    }
}
