package import FreshetSignals

/// Runs a body until it returns. When the interruption happens, the body is cancelled, and its end is awaited. The
/// interruption is for this body only.
///
/// - Parameter nothing: the result if the task was cancelled before the body could begin.
package func interruptible<Result: Sendable>(
    by interruption: OneTimeEvent, otherwise nothing: Result, _ body: @escaping @Sendable () async -> Result
) async -> Result {
    await withTaskGroup(of: Result.self) { group in
        group.addTask {
            defer { interruption.giveUp() }
            return await body()
        }
        if await interruption.wait() { group.cancelAll() }
        return await group.next() ?? nothing
    }
}
