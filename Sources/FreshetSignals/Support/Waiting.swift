// The state machines ensure that each continuation is resumed exactly once. Debug builds check this at run time;
// release builds avoid the allocation of the check.
#if DEBUG
    typealias Waiter = CheckedContinuation<Void, Never>
    typealias OfferWaiter = CheckedContinuation<Bool, Never>
#else
    typealias Waiter = UnsafeContinuation<Void, Never>
    typealias OfferWaiter = UnsafeContinuation<Bool, Never>
#endif

/// Suspends the calling task until the waiter that `suspend` gets is resumed.
///
/// - Parameters:
///   - suspend: Keeps the waiter and returns nil, or returns a waiter to be resumed now.
///   - onCancel: Called when the task is cancelled, immediately if it already is; may be called before `suspend`.
///     Returns the waiter to be resumed, if any.
func waitUntilResumed(
    isolation: isolated (any Actor)?,
    suspend: (Waiter) -> Waiter?,
    onCancel: @Sendable () -> Waiter?
) async {
    await withTaskCancellationHandler {
        #if DEBUG
            await withCheckedContinuation(isolation: isolation) { suspend($0)?.resume() }
        #else
            await withUnsafeContinuation(isolation: isolation) { suspend($0)?.resume() }
        #endif
    } onCancel: {
        onCancel()?.resume()
    }
}

/// Suspends a producer until its element was taken (`true`) or is no longer needed (`false`).
func waitUntilTaken(_ suspend: (OfferWaiter) -> Void) async -> Bool {
    #if DEBUG
        await withCheckedContinuation { suspend($0) }
    #else
        await withUnsafeContinuation { suspend($0) }
    #endif
}

/// The waiters that one event wakes, resumed after all locks are released. One waiter, the common case, allocates
/// nothing.
struct Wakes {
    private var first: Waiter?
    private var others: [Waiter] = []

    mutating func add(_ waiter: Waiter?) {
        guard let waiter else { return }
        if first == nil {
            first = waiter
        } else {
            others.append(waiter)
        }
    }

    func resumeAll() {
        first?.resume()
        for waiter in others {
            waiter.resume()
        }
    }
}
