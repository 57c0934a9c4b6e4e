// The state machines prove that each continuation is resumed exactly once. Debug builds have the runtime check that
// proof; release builds save its allocation.
#if DEBUG
    typealias Waiter = CheckedContinuation<Void, Never>
    typealias OfferWaiter = CheckedContinuation<Bool, Never>
#else
    typealias Waiter = UnsafeContinuation<Void, Never>
    typealias OfferWaiter = UnsafeContinuation<Bool, Never>
#endif

/// Suspends the calling task until somebody resumes the waiter that `suspend` was given.
///
/// - Parameters:
///   - suspend: Keeps the waiter and returns nil, or returns a waiter that is to be resumed now.
///   - onCancel: Called when the task is cancelled, at once if it already is; may be called before `suspend`. Returns
///     the waiter that is to be resumed for it, if any.
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

/// Suspends a producer until its element was taken (`true`) or is no longer wanted (`false`).
func waitUntilTaken(_ suspend: (OfferWaiter) -> Void) async -> Bool {
    #if DEBUG
        await withCheckedContinuation { suspend($0) }
    #else
        await withUnsafeContinuation { suspend($0) }
    #endif
}

/// Those that one event wakes, resumed after all locks are released. One is the common case and allocates nothing.
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
