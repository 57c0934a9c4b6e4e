import CLinux
import Glibc

/// Measures the processor time of the jobs of one thread, at a fraction of the cost of reading that time after each
/// job.
///
/// Reading the processor time of a thread is a system call of 0.2 to 5 µs. Reading the coarse clock is a memory access
/// of some nanoseconds; the clock moves once in each tick of the kernel (1 to 10 ms). So the processor time is read
/// only when the coarse clock has moved, and after every 64th job in case the tick is late. A job is charged with the
/// time since the last reading: its own time, and the time of earlier jobs in the same tick.
struct JobTimer {
    /// The sources of the times, in nanoseconds.
    struct Clocks: Sendable {
        /// Cheap and coarse, such as CLOCK_MONOTONIC_COARSE.
        var coarse: @Sendable () -> Int64
        /// The processor time of the thread.
        var processor: @Sendable () -> Int64

        static let system = Clocks {
            JobTimer.read(CLOCK_MONOTONIC_COARSE)
        } processor: {
            JobTimer.read(CLOCK_THREAD_CPUTIME_ID)
        }
    }

    /// How many jobs within one tick share a reading.
    static let jobsPerReading = 64

    private let clocks: Clocks
    private let limit: Int64
    /// The last readings.
    private var coarse: Int64
    private var processor: Int64
    private var jobsSinceReading = 0
    /// The named part of the current job, and its start; nil: the job has not named a part yet.
    private var part: String?
    private var partBegan: Int64 = 0
    private var longest: (name: String?, time: Int64)?

    /// - Parameter limit: The minimum processor time of a slow job.
    init(limit: Duration, clocks: Clocks = .system) {
        self.clocks = clocks
        let (seconds, attoseconds) = limit.components
        self.limit = seconds * 1_000_000_000 + attoseconds / 1_000_000_000
        coarse = clocks.coarse()
        processor = clocks.processor()
    }

    /// The thread has slept: the following time is charged to the next job.
    mutating func iterationBegins() {
        let now = clocks.coarse()
        if now != coarse { takeReading(at: now) }
    }

    /// Names what the current job does from here on.
    mutating func name(_ name: String) {
        let now = clocks.coarse()
        endPart(at: now)
        part = name
        partBegan = now
    }

    /// A job has ended. Returns it if it was slow.
    ///
    /// - Parameter name: The name of a job whose longest part has no name.
    mutating func jobEnded(_ name: String) -> SlowJob? {
        let now = clocks.coarse()
        jobsSinceReading += 1
        defer { forgetParts() }
        guard now != coarse else {
            // The job took less than a tick, or the tick is late: the time cannot be attributed to one job.
            if jobsSinceReading >= Self.jobsPerReading { takeReading(at: now) }
            return nil
        }
        endPart(at: now)
        let before = processor
        takeReading(at: now)
        guard processor - before >= limit else { return nil }
        return SlowJob(name: longest?.name ?? name, processorTime: .nanoseconds(processor - before))
    }

    private mutating func endPart(at now: Int64) {
        // The beginning of a job, before its first named part, counts from the last reading.
        let time = now - (part == nil ? coarse : partBegan)
        if time > longest?.time ?? -1 { longest = (part, time) }
    }

    private mutating func forgetParts() {
        guard part != nil || longest != nil else { return }
        part = nil
        longest = nil
    }

    private mutating func takeReading(at now: Int64) {
        coarse = now
        processor = clocks.processor()
        jobsSinceReading = 0
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
