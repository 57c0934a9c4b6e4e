import CLinux
import Glibc

/// How this process gets memory from the system, and gives it back.
public enum ProcessMemory {
    /// A block of 1 MiB or more goes back to the system when it is freed. Without this, malloc(3) keeps what one large
    /// body took for the next, and raises this threshold to 32 MiB by itself (mallopt(3), M_MMAP_THRESHOLD). Call it
    /// before there are threads.
    public static func returnLargeBlocks() {
        _ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
        _ = mallopt(M_TRIM_THRESHOLD, 1 << 20)
    }

    /// Limits the writable memory of a process of the same user (prlimit(2), RLIMIT_DATA). What the process has stays.
    ///
    /// - Parameter bytes: the soft limit; the hard one stays.
    public static func limit(_ process: Int32, to bytes: UInt64) throws(SystemCallError) {
        guard freshet_limit_data(process, UInt(clamping: bytes)) == 0 else {
            throw SystemCallError("prlimit", errno: errno)
        }
    }
}
