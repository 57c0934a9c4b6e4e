import FreshetEventLoop

/// Runs a blocking body on a new thread, so that it does not block one of the few threads that all tests share.
///
/// The body gets the task-local values of the caller's task, by which the testing library knows the test of an
/// expectation. Without them a failure belongs to no test, is reported once for each running test, and cannot be
/// repeated.
///
/// - Parameter body: it blocks no other task, and awaits nothing.
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
