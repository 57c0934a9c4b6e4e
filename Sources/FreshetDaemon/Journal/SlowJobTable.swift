import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines

/// Counts the slow jobs of the event loop by name, and decides which jobs are logged: one job of each name per minute,
/// and another one only if it is at least twice as slow.
struct SlowJobTable {
    /// The minimum processor time of a slow job. During that time all clients wait.
    static let limit: Duration = .milliseconds(20)
    static let logInterval: Duration = .seconds(60)
    /// The maximum number of names that are counted; the daemon has fewer.
    static let nameLimit = 100

    private struct Entry {
        var count: Int64 = 0
        var longest: Duration = .zero
        var logged: (at: BootInstant, time: Duration)?
    }

    private var entries: [String: Entry] = [:]

    /// Returns how many slow jobs of the name there have been, if the job is to be logged.
    mutating func record(_ job: SlowJob, at now: BootInstant) -> Int64? {
        guard entries[job.name] != nil || entries.count < Self.nameLimit else { return nil }
        var entry = entries[job.name, default: Entry()]
        defer { entries[job.name] = entry }
        entry.count += 1
        entry.longest = max(entry.longest, job.processorTime)
        if let logged = entry.logged, now < logged.at + Self.logInterval, job.processorTime < logged.time * 2 {
            return nil
        }
        entry.logged = (now, job.processorTime)
        return entry.count
    }

    /// The slow jobs, sorted by name.
    var status: [SlowJobStatus] {
        entries.sorted { $0.key < $1.key }.map { name, entry in
            SlowJobStatus(job: name, count: entry.count, longestUSec: entry.longest.microseconds)
        }
    }
}
