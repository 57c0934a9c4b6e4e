extension KernelTables {
    /// The result of reading all available messages.
    struct Followed: Hashable, Sendable {
        /// Whether a message may have changed a path.
        var hasChanges = false
        /// Whether messages were lost, or could not be read: the tables have to be listed again.
        var hasGaps = false
        /// The error that prevents further reading.
        var failure: NetlinkError?
        /// The number of datagrams.
        var count = 0
    }

    /// Applies the kernel's messages until there are no more, or `limit` datagrams were read.
    mutating func follow(limit: Int, _ receive: () -> NetlinkSocket.Received) -> Followed {
        var followed = Followed()
        while followed.count < limit {
            switch receive() {
            case .datagram(let datagram):
                let (messages, isWhole) = NetlinkMessage.split(datagram)
                for message in messages {
                    if let event = RoutingEvent(message), apply(event) { followed.hasChanges = true }
                }
                if !isWhole { followed.hasGaps = true }
            case .foreign: break
            case .overrun: followed.hasGaps = true
            case .empty: return followed
            case .failed(let error):
                followed.failure = error
                return followed
            }
            followed.count += 1
        }
        return followed
    }

    /// Lists the tables again until a list was not interrupted, at most `limit` times.
    ///
    /// - Parameter dump: Returns nil, or throws, if it has no consistent list.
    /// - Returns: The number of attempts, and whether the tables were replaced; otherwise they are unchanged.
    mutating func list(limit: Int, _ dump: () throws(NetlinkError) -> KernelTables?) -> (count: Int, isDone: Bool) {
        for count in 1...max(1, limit) {
            guard let tables = try? dump() else { continue }
            self = tables
            return (count, true)
        }
        return (max(1, limit), false)
    }
}
