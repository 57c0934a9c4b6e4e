import CLinux
import Glibc

/// Memory settings of processes.
public enum ProcessMemory {
    /// Makes malloc(3) keep little memory for a process that works in bursts and rests between them. Call it before
    /// there are threads. See mallopt(3).
    public static func keepLittle() {
        // Otherwise malloc keeps the memory of one large body for the next, and raises the first threshold to 32 MiB
        // by itself.
        _ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
        _ = mallopt(M_TRIM_THRESHOLD, 1 << 20)
        // Two arenas for all threads instead of sixteen on two processors: what one thread frees, another one uses. The
        // threads that read the configuration leave gaps for the pipelines. With a single arena, thousands of
        // pipelines took a twentieth less memory, but their first fetch more time. docs/performance.md has the figures.
        _ = mallopt(M_ARENA_MAX, 2)
    }

    /// Returns freed memory that malloc(3) keeps to the system (malloc_trim(3)). Takes milliseconds, and
    /// other threads that allocate wait meanwhile.
    public static func returnFreed() {
        _ = malloc_trim(0)
    }

    /// The anonymous memory of this process that is in RAM, in bytes; nil: unknown (proc_pid_statm(5)).
    public static var anonymous: UInt64? {
        let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 256)
        let length = read(descriptor, &text, text.count)
        guard length > 0 else { return nil }
        let pages = text[..<length].split(separator: UInt8(ascii: " "), maxSplits: 3).prefix(3)
            .map { UInt64(String(decoding: $0, as: UTF8.self)) }
        guard pages.count == 3, let resident = pages[1], let shared = pages[2], resident >= shared else { return nil }
        return (resident - shared) * UInt64(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Limits the writable memory of a process of the same user (prlimit(2), RLIMIT_DATA). Memory that the process
    /// already has stays.
    ///
    /// - Parameters:
    ///   - process: the process identifier.
    ///   - bytes: the soft limit; the hard limit does not change.
    public static func limit(_ process: Int32, to bytes: UInt64) throws(SystemCallError) {
        guard freshet_limit_data(process, UInt(clamping: bytes)) == 0 else {
            throw SystemCallError("prlimit", errno: errno)
        }
    }
}
