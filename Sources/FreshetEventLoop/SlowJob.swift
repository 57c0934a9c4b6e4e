/// A job of an ``EventLoop`` that used more processor time than its observer allows.
package struct SlowJob: Hashable, Sendable {
    /// The name of the job's longest part; without named parts, the name with which the handler was registered.
    package var name: String
    /// The processor time that the job used. It may contain up to one tick of the kernel's clock (1 to 10 ms) in which
    /// other jobs ran.
    package var processorTime: Duration

    package init(name: String, processorTime: Duration) {
        self.name = name
        self.processorTime = processorTime
    }
}

extension EventLoop {
    /// Calls a handler after each job that used at least this much processor time of the loop's thread. Time in which
    /// the thread waited for the processor does not count, so other load does not make a job slow.
    ///
    /// A later call replaces the handler.
    ///
    /// - Parameters:
    ///   - limit: The minimum processor time of a slow job.
    ///   - handler: Called on the loop's thread.
    package func observeSlowJobs(over limit: Duration, _ handler: @escaping @Sendable (SlowJob) -> Void) {
        jobWatch.observe(limit, handler)
    }

    /// Names what the current job does from here on. If the job is slow, it is reported under the name of its longest
    /// part. Without an observer, and on other threads, this has no effect.
    ///
    /// - Parameter name: One of a few constant names, never external text: each name has a counter in the metrics.
    package func nameJob(_ name: String) {
        guard isCurrent else { return }
        jobWatch.name(name)
    }
}
