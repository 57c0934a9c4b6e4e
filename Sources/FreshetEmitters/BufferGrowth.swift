import Glibc

/// How a body in memory grows whose length nobody knows.
///
/// An array that grows doubles, and both halves are there while it is copied: a body of 64 MiB would take 192. So a body
/// that is no small one gets address space for all that it may become, once; memory comes with the bytes.
enum BufferGrowth {
    /// Bytes: up to that a body grows as arrays do.
    static let small = 1 << 20
    /// The most address space for one body, in bytes. A kernel may deny more than the machine's memory.
    static let most: Int = {
        let memory = sysconf(Int32(_SC_PHYS_PAGES)).multipliedReportingOverflow(by: sysconf(Int32(_SC_PAGESIZE)))
        return memory.overflow ? 64 << 20 : max(64 << 20, memory.partialValue / 4)
    }()

    /// Makes an array ready for so many more bytes.
    ///
    /// - Parameter limit: the most bytes that the body may have.
    static func prepare(_ body: inout [UInt8], for count: Int, limit: UInt64) {
        let size = body.count + count
        guard size > small, size > body.capacity else { return }
        let all = Int(clamping: min(limit, UInt64(most)))
        if size <= all { body.reserveCapacity(all) }
    }
}
