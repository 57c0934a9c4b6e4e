/// The bytes that wait to be sent on a connection, up to a limit.
struct OutgoingBuffer: Sendable {
    /// The most bytes.
    let limit: Int
    private var bytes: [UInt8] = []
    /// The index of the first byte that was not taken.
    private var start = 0

    init(limit: Int) { self.limit = limit }

    var count: Int { bytes.count - start }
    var isEmpty: Bool { count == 0 }

    /// Whether so many more bytes fit.
    func fits(_ more: Int) -> Bool { more <= limit - count }

    /// Adds bytes, whose number was checked with ``fits(_:)``.
    mutating func append(_ more: some Collection<UInt8>) {
        // Each byte is moved at most once for each time that the buffer doubles.
        if start > bytes.count / 2 {
            bytes.removeFirst(start)
            start = 0
        }
        bytes.append(contentsOf: more)
    }

    /// Takes the first bytes, at most as many as the target has space for. Returns their number.
    mutating func take(into target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(count, target.count)
        guard count > 0 else { return 0 }
        bytes.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<(start + count)])) }
        start += count
        if start == bytes.count {
            // The memory of a large message is given back.
            bytes.removeAll(keepingCapacity: bytes.capacity <= 4_096)
            start = 0
        }
        return count
    }
}
