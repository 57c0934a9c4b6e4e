package import FreshetSignals

/// Runs a body until it returns. When the value becomes true, the body is cancelled, and its end is awaited.
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
