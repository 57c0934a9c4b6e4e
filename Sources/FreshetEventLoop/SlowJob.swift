/// A job of an ``EventLoop`` that used more processor time than its observer allows.
package struct SlowJob: Hashable, Sendable {
    /// The name of the job's longest part; without named parts, the name that the handler was registered with.
    package var name: String
    /// The processor time that the job used. It may contain one tick of the kernel's clock too much (1 to 10 ms), in which
    /// other jobs ran.
    package var processorTime: Duration

    package init(name: String, processorTime: Duration) {
        self.name = name
        self.processorTime = processorTime
    }
}

extension EventLoop {
    /// Has a handler called after each job that used at least this much processor time of the loop's thread. Time in which
    /// the thread waited for the processor does not count, so a busy machine accuses no job.
    ///
    /// A later call replaces the handler.
    ///
    /// - Parameters:
    ///   - limit: the least processor time of a slow job.
    ///   - handler: runs on the loop's thread.
    package func observeSlowJobs(over limit: Duration, _ handler: @escaping @Sendable (SlowJob) -> Void) {
        jobWatch.observe(limit, handler)
    }

    /// Names what the current job does from here on. If the job turns out to be slow, the name of its longest part stands for
    /// the job. Without an observer, and on other threads, it does nothing.
    ///
    /// - Parameter name: one of a few names, never text from outside: each has a counter in the metrics.
    package func nameJob(_ name: String) {
        guard isCurrent else { return }
        jobWatch.name(name)
    }
}
