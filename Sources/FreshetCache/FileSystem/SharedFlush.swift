import Synchronization

/// Group commit: callers that have to wait until a directory or file is on disk share the flush.
///
/// A flush that begins after a change includes the change, whichever caller made it. So a caller that comes during a
/// flush waits for the next flush, which one of the waiting callers makes for all of them: `n` concurrent callers cost
/// at most two flushes, one after the other.
///
/// Safe to call from any thread; blocks the calling thread. The flush runs without a lock of this object.
final class SharedFlush: Sendable {
    /// The number of failed flushes, and the last error.
    private struct Failures: Sendable {
        var count = 0
        var last: SystemCallError?
    }

    /// `@unchecked Sendable`: only the thread that runs the group sets the values, before ``CallGroups/perform(_:_:)``
    /// returns to the caller, which alone reads them.
    private final class Call: @unchecked Sendable {
        /// All callers of the flush get its error: the kernel reports a failed write only once (fsync(2)).
        var error: SystemCallError?
        /// As of the end of the flush.
        var failed = Failures()
    }

    private let calls = CallGroups<Call>()
    private let failed = Mutex(Failures())

    /// The number of failed flushes. Read it before the change that is to be flushed.
    var failures: Int { failed.withLock(\.count) }

    /// Returns when a flush that began after this call has ended.
    ///
    /// - Parameters:
    ///   - count: the ``failures`` before the change. A flush that failed since then may have included the change, and
    ///     the kernel reports the error only once. So this call throws that error even if a later flush succeeded.
    ///   - flush: called by one of the callers that share it; all callers must pass an equivalent closure.
    func perform(
        since count: Int? = nil, _ flush: () throws(SystemCallError) -> Void
    ) throws(SystemCallError) {
        let call = Call()
        calls.perform(call) { group in
            var failure: SystemCallError?
            do throws(SystemCallError) { try flush() } catch { failure = error }
            let failed = failed.withLock { failed in
                // Other errors concern only the callers of this flush.
                if let failure, failure.call == "fsync" {
                    failed.count += 1
                    failed.last = failure
                }
                return failed
            }
            for call in group { (call.error, call.failed) = (failure, failed) }
        }
        if let error = call.error { throw error }
        if let count, call.failed.count > count, let error = call.failed.last { throw error }
    }

    /// The number of callers that wait for the flush in progress.
    var waiting: Int { calls.waiting }
}
