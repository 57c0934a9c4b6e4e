package import FreshetSignals

/// Runs a body until it returns; when the value becomes true it is cancelled, and awaited all the same.
///
/// - Parameter nothing: the result if the task was cancelled before the body could begin.
package func interruptible<Result: Sendable>(
    by interruption: CurrentValue<Bool>, otherwise nothing: Result, _ body: @escaping @Sendable () async -> Result
) async -> Result {
    await withTaskGroup(of: Result?.self) { group in
        group.addTask { await body() }
        group.addTask {
            for await isInterrupted in interruption where isInterrupted { break }
            return nil
        }
        var result = nothing
        for await ended in group {
            group.cancelAll()
            if let ended { result = ended }
        }
        return result
    }
}
