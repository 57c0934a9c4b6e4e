import CLinux

/// How this process gets memory from the system, and gives it back.
public enum ProcessMemory {
    /// A block of 1 MiB or more goes back to the system when it is freed. Without this, malloc(3) keeps what one large
    /// body took for the next, and raises this threshold to 32 MiB by itself (mallopt(3), M_MMAP_THRESHOLD). Call it
    /// before there are threads.
    public static func returnLargeBlocks() {
        _ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
        _ = mallopt(M_TRIM_THRESHOLD, 1 << 20)
    }
}
