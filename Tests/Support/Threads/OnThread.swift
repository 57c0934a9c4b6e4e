import FreshetEventLoop

/// Runs what may block on a thread of its own, so that it keeps none of the few that all tests share.
///
/// It runs inside the caller's task, as it were: with its task-local values, by which the testing library knows whose an
/// expectation is. On a thread without them a failure belongs to no test, is reported once for each that runs at the
/// moment, and cannot be run again.
///
/// - Parameter body: it blocks nobody else, and awaits nothing.
package func onThread<Success: Sendable>(
    _ body: @escaping @Sendable () throws -> Success
) async -> Result<Success, any Error> {
    do {
        let loop = try EventLoop()
        try loop.runInThread(named: "test-body")
        defer { loop.stop() }
        return await Task(executorPreference: loop) { try body() }.result
    } catch {
        return .failure(error)
    }
}
