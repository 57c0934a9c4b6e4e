/// Registers the wait of one answer for memory with its run. Always call ``end()``.
struct MemoryWait: Sendable {
    private let permits: RunPermits
    private let number: UInt64

    init(_ permits: RunPermits) {
        self.permits = permits
        number = permits.nextWait()
    }

    func begin(_ detail: String) { permits.recordMemoryWait(number, detail) }
    func end() { permits.recordMemoryWait(number, nil) }
}
