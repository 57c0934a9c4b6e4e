/// The subscriptions of a client, by the numbers that the protocol uses.
struct SubscriptionTable {
    private struct Entry {
        var pattern: NATSSubjectPattern
        var buffer: SubscriptionBuffer
        /// Whether a server has had the subscription: the next time, messages may be missing before it.
        var wasSent = false
    }

    private var entries: [UInt64: Entry] = [:]
    /// 1 is the subscription for replies.
    private var lastNumber: UInt64 = 1

    var count: Int { entries.count }

    /// Adds a subscription and returns its number.
    mutating func add(_ pattern: NATSSubjectPattern, _ buffer: SubscriptionBuffer) -> UInt64 {
        lastNumber += 1
        entries[lastNumber] = Entry(pattern: pattern, buffer: buffer)
        return lastNumber
    }

    /// Removes a subscription; false: it was removed before.
    mutating func remove(_ number: UInt64) -> Bool { entries.removeValue(forKey: number) != nil }

    /// The buffer of a subscription; nil: the subscription has ended, and the server does not know it yet.
    func buffer(of number: UInt64) -> SubscriptionBuffer? { entries[number]?.buffer }

    /// The subscription was sent to the server.
    mutating func sent(_ number: UInt64) { entries[number]?.wasSent = true }

    /// A connection has been made: returns the operations that subscribe again, in the order of the subscriptions.
    mutating func resubscribe() -> [UInt8] {
        var bytes: [UInt8] = []
        for number in entries.keys.sorted() {
            guard let entry = entries[number] else { continue }
            bytes += ClientOperation.subscribe(entry.pattern, number: number)
            if entry.wasSent { entry.buffer.resubscribed() }
            entries[number]?.wasSent = true
        }
        return bytes
    }

    /// Removes the subscriptions of a pattern, which the server does not permit.
    mutating func remove(pattern: String) -> [SubscriptionBuffer] {
        let numbers = entries.filter { $0.value.pattern.description == pattern }.keys.sorted()
        return numbers.compactMap { entries.removeValue(forKey: $0)?.buffer }
    }

    mutating func removeAll() -> [SubscriptionBuffer] {
        defer { entries = [:] }
        return entries.values.map(\.buffer)
    }
}
