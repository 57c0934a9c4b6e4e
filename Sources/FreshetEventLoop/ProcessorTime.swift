import CLinux
import Glibc

/// The processor time of the calling thread (CLOCK_THREAD_CPUTIME_ID, clock_gettime(2)). Time in which the thread
/// waited, or in which other threads had the processor, does not count, so other load does not change the measurement.
package enum ProcessorTime {
    /// The time that the calling thread has used since it began.
    package static var used: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
