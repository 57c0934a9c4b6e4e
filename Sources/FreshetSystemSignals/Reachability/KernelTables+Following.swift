extension KernelTables {
    /// What reading until there was nothing more came to.
    struct Followed: Hashable, Sendable {
        /// Something came after which a path may be another one.
        var hasNews = false
        /// Messages were lost, or could not be read: the tables have to be listed anew.
        var hasGaps = false
        /// Why it cannot go on.
        var failure: NetlinkError?
        /// Datagrams that were taken.
        var count = 0
    }

    /// Takes in what the kernel sent, until there is nothing more, or `limit` datagrams were read.
    mutating func follow(limit: Int, _ receive: () -> NetlinkSocket.Received) -> Followed {
        var followed = Followed()
        while followed.count < limit {
            switch receive() {
            case .datagram(let datagram):
                let (messages, isWhole) = NetlinkMessage.split(datagram)
                for message in messages {
                    if let event = RoutingEvent(message), apply(event) { followed.hasNews = true }
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

    /// Lists anew until a list was not interrupted, at most `limit` times.
    ///
    /// - Parameter dump: returns nil, or throws, if there is no list that fits together.
    /// - Returns: how often it was listed, and whether the tables are the new ones; else they are as they were.
    mutating func list(limit: Int, _ dump: () throws(NetlinkError) -> KernelTables?) -> (count: Int, isDone: Bool) {
        for count in 1...max(1, limit) {
            guard let tables = try? dump() else { continue }
            self = tables
            return (count, true)
        }
        return (max(1, limit), false)
    }
}
