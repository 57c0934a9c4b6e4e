import Glibc

/// Reserves capacity for a body in memory of unknown length.
///
/// A growing array doubles its capacity, and the old and the new storage exist while it is copied: a body of 64 MiB
/// would take 192 MiB. So a body that is not small gets, once, address space for its greatest possible length. The
/// kernel commits memory as bytes arrive.
enum BufferGrowth {
    /// Up to this size, in bytes, a body grows as any array does.
    static let small = 1 << 20
    /// The most address space for one body, in bytes. The kernel may refuse more than the machine's memory.
    static let most: Int = {
        let memory = sysconf(Int32(_SC_PHYS_PAGES)).multipliedReportingOverflow(by: sysconf(Int32(_SC_PAGESIZE)))
        return memory.overflow ? 64 << 20 : max(64 << 20, memory.partialValue / 4)
    }()

    /// Prepares an array for `count` more bytes.
    ///
    /// - Parameter limit: the most bytes that the body may have.
    static func prepare(_ body: inout [UInt8], for count: Int, limit: UInt64) {
        let size = body.count + count
        guard size > small, size > body.capacity else { return }
        let all = Int(clamping: min(limit, UInt64(most)))
        if size <= all { body.reserveCapacity(all) }
    }
}
