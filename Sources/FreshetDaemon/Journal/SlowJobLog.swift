import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Logging
import Synchronization

/// Logs and counts the slow jobs of the event loop.
final class SlowJobLog: Sendable {
    private let table = Mutex(SlowJobTable())
    private let log: Logger

    init(_ log: Logger) { self.log = log }

    /// Starts to measure the jobs of a loop.
    func observe(_ loop: EventLoop) {
        loop.observeSlowJobs(over: SlowJobTable.limit) { [weak self] in self?.record($0) }
    }

    var status: [SlowJobStatus] { table.withLock { $0.status } }

    private func record(_ job: SlowJob) {
        guard let count = table.withLock({ $0.record(job, at: .now) }) else { return }
        log.log(
            .slowJob,
            [
                .job: .string(job.name), .milliseconds: .stringConvertible(job.processorTime.microseconds / 1_000),
                .count: .stringConvertible(count),
            ])
    }
}
