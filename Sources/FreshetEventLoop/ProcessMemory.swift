import CLinux
import Glibc

/// Memory settings of processes.
public enum ProcessMemory {
    /// Makes malloc(3) return freed blocks of 1 MiB or more to the system. Otherwise malloc keeps the memory of one
    /// large body for the next, and raises this threshold to 32 MiB by itself (mallopt(3), M_MMAP_THRESHOLD). Call it
    /// before there are threads.
    public static func returnLargeBlocks() {
        _ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
        _ = mallopt(M_TRIM_THRESHOLD, 1 << 20)
    }

    /// Limits the writable memory of a process of the same user (prlimit(2), RLIMIT_DATA). Memory that the process
    /// already has stays.
    ///
    /// - Parameter bytes: The soft limit; the hard limit does not change.
    public static func limit(_ process: Int32, to bytes: UInt64) throws(SystemCallError) {
        guard freshet_limit_data(process, UInt(clamping: bytes)) == 0 else {
            throw SystemCallError("prlimit", errno: errno)
        }
    }
}
