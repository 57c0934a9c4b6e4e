/// Decides which requests have a permit and which wait.
///
/// The waiting requests of one pipeline at one origin are a *queue*. A queue has a *position*, a number that grows with
/// the time at which the queue began to wait or last got a permit. Of the queues whose origin is below its limit, the
/// one with the least position is next.
///
/// An invariant holds between two calls: if the total is below its limit, no queue waits at an origin below its limit.
struct RequestLimiterMachine<Grant> {
    typealias Limits = RequestLimiter.Limits

    private struct QueueKey: Hashable {
        var pipeline: UInt64
        /// The index of the origin.
        var origin: Int
    }

    private struct WaitQueue {
        var position: UInt64
        /// In the order of the requests.
        var tickets: ArraySlice<UInt64>
    }

    private struct OriginState {
        /// Nil: the requests without an origin, which have no own limit.
        var origin: HTTPOrigin?
        var taken = 0
        /// The positions of the queues at this origin.
        var positions = PositionList()
        /// The position of this origin in the machine's `open` list; nil: it has none.
        var open: UInt64?
    }

    private var limits: Limits
    private var lastTicket: UInt64 = 0
    private var lastPosition: UInt64 = 0
    /// The index of the origin of each permit in use.
    private var taken: [UInt64: Int] = [:]
    private var waiting: [UInt64: (queue: QueueKey, grant: Grant)] = [:]
    private var queues: [QueueKey: WaitQueue] = [:]
    private var queueAtPosition: [UInt64: QueueKey] = [:]
    /// The indexes of the origins with requests in progress or waiting. A request looks its origin up once; everything
    /// else has the index, which is neither hashed nor compared as a text.
    private var indexes: [HTTPOrigin?: Int] = [:]
    private var origins: [OriginState] = []
    /// The indexes without an origin.
    private var freeIndexes: [Int] = []
    /// The positions of all queues.
    private var positions = PositionList()
    /// The least position of each origin that is below its limit.
    private var open = PositionList()

    init(_ limits: Limits) {
        self.limits = Self.sound(limits)
    }

    var takenCount: Int { taken.count }
    var waitingCount: Int { waiting.count }
    /// Whether the machine has no state at all.
    var isEmpty: Bool {
        taken.isEmpty && waiting.isEmpty && queues.isEmpty && queueAtPosition.isEmpty && indexes.isEmpty
            && positions.first == nil && open.first == nil
    }

    mutating func request(
        for pipeline: UInt64, at origin: HTTPOrigin?, _ grant: Grant
    ) -> (ticket: UInt64, isGranted: Bool) {
        lastTicket += 1
        let origin = index(of: origin)
        if taken.count < limits.total, isBelowLimit(origin) {
            take(lastTicket, at: origin)
            return (lastTicket, true)
        }
        let key = QueueKey(pipeline: pipeline, origin: origin)
        waiting[lastTicket] = (key, grant)
        if queues[key]?.tickets.append(lastTicket) == nil { beginToWait(key, [lastTicket]) }
        update(origin)
        return (lastTicket, false)
    }

    /// Returns the handler of the request that gets the released permit.
    mutating func release(_ ticket: UInt64) -> Grant? {
        if let origin = taken.removeValue(forKey: ticket) {
            origins[origin].taken -= 1
            update(origin)
            return next()
        }
        guard let (key, _) = waiting.removeValue(forKey: ticket), var queue = queues[key] else { return nil }
        defer { returnMemory() }
        queue.tickets.removeAll { $0 == ticket }
        if queue.tickets.isEmpty { endToWait(key, queue.position) } else { queues[key] = queue }
        update(key.origin)
        return nil
    }

    /// Returns the handlers of the requests that get a permit now.
    mutating func change(_ new: Limits) -> [Grant] {
        limits = Self.sound(new)
        for origin in indexes.values { update(origin) }
        var granted: [Grant] = []
        while let grant = next() { granted.append(grant) }
        return granted
    }

    func queue(of ticket: UInt64) -> RequestLimiter.Queue? {
        guard let key = waiting[ticket]?.queue, let queue = queues[key] else { return nil }
        if isBelowLimit(key.origin) {
            return RequestLimiter.Queue(limit: limits.total, ahead: positions.count(before: queue.position))
        }
        return RequestLimiter.Queue(
            origin: origins[key.origin].origin, limit: limits.perOrigin,
            ahead: origins[key.origin].positions.count(before: queue.position))
    }

    /// Grants a free permit to the next queue, if there is one.
    private mutating func next() -> Grant? {
        guard taken.count < limits.total, let position = open.first, let key = queueAtPosition[position],
            var queue = queues[key],
            let ticket = queue.tickets.popFirst(), let (_, grant) = waiting.removeValue(forKey: ticket)
        else { return nil }
        defer { returnMemory() }
        endToWait(key, position)
        // The queue's other requests go behind all queues that wait now.
        if !queue.tickets.isEmpty { beginToWait(key, queue.tickets) }
        take(ticket, at: key.origin)
        return grant
    }

    private mutating func beginToWait(_ key: QueueKey, _ tickets: ArraySlice<UInt64>) {
        lastPosition += 1
        queues[key] = WaitQueue(position: lastPosition, tickets: tickets)
        queueAtPosition[lastPosition] = key
        positions.insert(lastPosition)
        origins[key.origin].positions.insert(lastPosition)
    }

    private mutating func endToWait(_ key: QueueKey, _ position: UInt64) {
        queues[key] = nil
        queueAtPosition[position] = nil
        positions.remove(position)
        origins[key.origin].positions.remove(position)
    }

    /// After a burst in which thousands of requests waited, the empty tables would keep their memory.
    private mutating func returnMemory() {
        guard waiting.isEmpty, waiting.capacity > 64 else { return }
        (waiting, queues, queueAtPosition) = ([:], [:], [:])
    }

    private mutating func take(_ ticket: UInt64, at origin: Int) {
        taken[ticket] = origin
        origins[origin].taken += 1
        update(origin)
    }

    private func isBelowLimit(_ origin: Int) -> Bool {
        origins[origin].taken < limits.perOrigin || origins[origin].origin == nil
    }

    /// Updates the `open` list after a change of an origin's permits or queues.
    private mutating func update(_ origin: Int) {
        let (first, before) = (origins[origin].positions.first, origins[origin].open)
        let now = isBelowLimit(origin) ? first : nil
        if now != before {
            if let before { open.remove(before) }
            if let now { open.insert(now) }
            origins[origin].open = now
        }
        if first == nil, origins[origin].taken == 0 { forget(origin) }
    }

    /// The index of an origin, which is given a request.
    private mutating func index(of origin: HTTPOrigin?) -> Int {
        if let index = indexes[origin] { return index }
        let index = freeIndexes.popLast() ?? origins.count
        if index == origins.count {
            origins.append(OriginState(origin: origin))
        } else {
            origins[index] = OriginState(origin: origin)
        }
        indexes[origin] = index
        return index
    }

    /// Frees the index of an origin without requests. After a burst with thousands of origins, the empty tables would
    /// keep their memory.
    private mutating func forget(_ index: Int) {
        indexes[origins[index].origin] = nil
        if indexes.isEmpty, origins.count > 64 {
            (indexes, origins, freeIndexes) = ([:], [], [])
        } else {
            origins[index] = OriginState()
            freeIndexes.append(index)
        }
    }

    private static func sound(_ limits: Limits) -> Limits {
        Limits(total: max(1, limits.total), perOrigin: max(1, limits.perOrigin))
    }
}

/// A sorted list of positions. New positions are the greatest, and the least are removed first: both are cheap. Other
/// positions are found by binary search.
private struct PositionList {
    private var positions: ArraySlice<UInt64> = []

    var first: UInt64? { positions.first }

    func count(before position: UInt64) -> Int { index(of: position) - positions.startIndex }

    mutating func insert(_ position: UInt64) {
        if let last = positions.last, position < last {
            positions.insert(position, at: index(of: position))
        } else {
            positions.append(position)
        }
    }

    mutating func remove(_ position: UInt64) {
        let index = index(of: position)
        guard index < positions.endIndex, positions[index] == position else { return }
        if index == positions.startIndex { positions.removeFirst() } else { positions.remove(at: index) }
    }

    /// The index of the position, or where it would be inserted.
    private func index(of position: UInt64) -> Int {
        var low = positions.startIndex
        var high = positions.endIndex
        while low < high {
            let middle = (low + high) / 2
            if positions[middle] < position { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
