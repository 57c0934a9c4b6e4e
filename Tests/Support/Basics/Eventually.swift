import Glibc

/// The longest time that a test waits for an expected event. Only a failure waits this long: a busy machine may stop a
/// test for many seconds between two lines.
package let testTimeout: Duration = .seconds(120)
/// The same for poll(2).
package let testTimeoutMilliseconds: Int32 = 120_000

/// Limits how long a send on a socket blocks: without it, a peer that neither reads nor closes would hold a test for good,
/// also beyond the test's own limit.
package func limitSends(on socket: Int32) {
    var limit = timeval(tv_sec: Int(testTimeoutMilliseconds / 1_000), tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
}

/// Polls until a condition holds, from a thread that may block (``onThread``).
///
/// - Returns: whether it held within ``testTimeout``. Put the call into `#expect`, and the known state into the comment
///   of `#expect`.
package func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
    let deadline = ContinuousClock.now + testTimeout
    while try !condition() {
        guard ContinuousClock.now < deadline else { return false }
        poll(nil, 0, 1)
    }
    return true
}

/// Polls until a condition holds, from a task. It blocks the task's thread for a millisecond between two checks and
/// then lets other tasks run: a loop without that pause would keep a processor busy.
///
/// - Returns: whether it held within ``testTimeout``.
nonisolated(nonsending) package func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
    let deadline = ContinuousClock.now + testTimeout
    while try await !condition() {
        guard ContinuousClock.now < deadline else { return false }
        poll(nil, 0, 1)
        await Task.yield()
    }
    return true
}

/// Polls from a task, for a condition that awaits nothing. Without this overload, the compiler would choose the one that
/// blocks the thread.
nonisolated(nonsending) package func eventually(_ condition: () throws -> Bool) async rethrows -> Bool {
    try await eventually { () async throws -> Bool in try condition() }
}
