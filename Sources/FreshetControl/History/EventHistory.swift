/// The last events, oldest first, up to a limit.
///
/// The events are kept as bytes in a few large blocks, and become values when they are read. A value has up to ten small
/// blocks of the heap. They would stay for hours between blocks that runs free, and malloc(3) returns no page in which
/// one block is still used.
struct EventHistory {
    /// The bytes of a block: about 500 events. A block with its header fills whole pages.
    static let blockBytes = (32 << 10) - 64

    /// Events one after the other, each after its length.
    private struct Block {
        var bytes: [UInt8]
        /// How many events are kept.
        var count = 0
        /// Where the oldest event begins that is kept.
        var start = 0
    }

    let limit: Int
    /// Oldest first; each has an event that is kept.
    private var blocks: [Block] = []
    /// The memory of a block without events, for the next block.
    private var spare: [UInt8] = []
    /// How many events are kept.
    private var count = 0
    /// How many events have been dropped: the number of the oldest event that is kept.
    private var forgotten = 0
    /// The pipeline whose run has ended, if the newest event says that.
    private var endedLast: String?

    init(limit: Int) { self.limit = limit }

    /// Whether no event has been dropped.
    var isWhole: Bool { forgotten == 0 }
    var numbers: Range<Int> { forgotten..<forgotten + count }
    /// The time of the oldest event.
    var oldest: Int64? { page(from: forgotten, limit: 1).events.first?.at }

    /// The events from this number on, oldest first.
    func page(from number: Int, limit: Int) -> ControlEvents.Page {
        let start = min(max(number, numbers.lowerBound), numbers.upperBound)
        let next = min(start + limit, numbers.upperBound)
        var events: [ControlEvent] = []
        events.reserveCapacity(next - start)
        var before = start - forgotten
        for block in blocks {
            guard events.count < next - start else { break }
            guard before < block.count else {
                before -= block.count
                continue
            }
            var reader = FieldReader(block.bytes, at: block.start)
            for _ in 0..<before { reader.skip() }
            for _ in before..<min(block.count, before + next - start - events.count) {
                reader.enter()
                events.append(ControlEvent(from: &reader))
            }
            before = 0
        }
        return ControlEvents.Page(events: events, start: start, next: next)
    }

    mutating func append(_ event: ControlEvent) {
        if isImpliedByRun(event) { return }
        endedLast = event.kind == .runEnded ? event.pipeline : nil
        var writer = FieldWriter()
        event.write(to: &writer)
        if count == limit { dropOldest() }
        add(writer.bytes)
        count += 1
    }

    private mutating func add(_ event: [UInt8]) {
        var length = FieldWriter(capacity: FieldWriter.longestNumber)
        length.write(UInt64(event.count))
        let size = length.bytes.count + event.count
        if blocks.last.map({ $0.bytes.count + size > Self.blockBytes }) ?? true {
            var bytes: [UInt8] = []
            swap(&bytes, &spare)
            bytes.reserveCapacity(max(Self.blockBytes, size))
            blocks.append(Block(bytes: bytes))
        }
        let last = blocks.count - 1
        blocks[last].bytes += length.bytes
        blocks[last].bytes += event
        blocks[last].count += 1
    }

    private mutating func dropOldest() {
        count -= 1
        forgotten += 1
        blocks[0].count -= 1
        guard blocks[0].count == 0 else {
            var reader = FieldReader(blocks[0].bytes, at: blocks[0].start)
            reader.skip()
            blocks[0].start = reader.position
            return
        }
        spare = blocks.removeFirst().bytes
        // A block with a long event is larger.
        if spare.capacity > 2 * Self.blockBytes { spare = [] } else { spare.removeAll(keepingCapacity: true) }
    }

    /// Whether the events of a run imply this change of state: loading during the run, or loaded after it.
    private func isImpliedByRun(_ event: ControlEvent) -> Bool {
        guard event.kind == .state, event.detail == nil else { return false }
        if event.state == .loading { return true }
        return event.state == .loaded && endedLast != nil && endedLast == event.pipeline
    }
}
