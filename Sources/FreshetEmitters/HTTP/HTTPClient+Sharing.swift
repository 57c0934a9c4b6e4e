/// Origins whose connections take several requests at once.
///
/// Of others nobody waits for a connection: one that turns out to take one request after the other would have cost those
/// who waited a handshake's time.
extension HTTPClient {
    /// More origins than a configuration has; those beyond it are asked without waiting.
    static let maxSharing = 4096

    /// Notes what a hop that has ended says of its origin.
    ///
    /// - Parameter isShared: nil: nothing was answered. Of such an origin nothing is known any more.
    func learn(of origin: Origin, isShared: Bool?) {
        if isShared == true {
            if sharing.count < Self.maxSharing { sharing.insert(origin) }
        } else if sharing.remove(origin) != nil {
            stopWaiting(for: origin)
        }
    }

    /// Has those who wait for a connection make their own. libcurl would have the next of them make one, and all others wait
    /// for that: where nobody answers, for one time-out after the other.
    private func stopWaiting(for origin: Origin) {
        for exchange in exchanges.values where exchange.waitsForConnection && exchange.origin == origin {
            guard exchange.result == nil, !exchange.isConnected, let pool = pools[exchange.pool] else { continue }
            pool.remove(exchange)
            exchange.waitsForConnection = false
            start(exchange, in: pool)
        }
    }
}
