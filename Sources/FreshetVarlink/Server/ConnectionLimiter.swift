/// Counts the clients of a server, and decides which connection gives way to a newcomer when a limit is reached.
///
/// Privileged clients are always admitted: some connections are reserved for them, and if none is free, they displace
/// others. Unprivileged users share the other connections by their numbers of connections. A newcomer of a user without
/// a connection is admitted too: an attacker, even with many users, cannot keep others out with connections that stay
/// open.
struct ConnectionLimiter {
    typealias Instant = ContinuousClock.Instant

    /// The rank of a client. A connection never gives way to a newcomer of a lower rank.
    enum Rank: Int, Comparable, CaseIterable {
        case unprivileged, privileged, root

        static func < (left: Rank, right: Rank) -> Bool { left.rawValue < right.rawValue }
    }

    struct Client: Hashable {
        var user: UInt32
        var rank: Rank
    }

    /// The present activity of a connection.
    enum Activity: Hashable {
        /// The client has gone away, but its last calls have not ended.
        case abandoned
        /// The server waits for the next call of the client, or until the client reads.
        case waiting(since: Instant)
        /// The call in progress only waits for events.
        case following(since: Instant)
        /// The server has not looked at the connection yet, or bytes have arrived whose turn has not come.
        case queued(since: Instant)
        /// The server processes a call.
        case working
    }

    /// An admitted connection.
    struct Occupant: Hashable {
        var client: Client
        var accepted: Instant
        var activity: Activity
    }

    /// While each user has only one connection, connections younger than this are the last to give way: a client whose
    /// first call has not been read yet must not count as silent.
    static let settling: Duration = .seconds(1)

    private let limits: VarlinkServer.Limits
    private var users: [UInt32: Int] = [:]
    private var ranks: [Rank: Int] = [:]
    private(set) var count = 0

    init(_ limits: VarlinkServer.Limits) { self.limits = limits }

    /// Counts a new client, unless a limit is reached; returns whether the client is admitted.
    mutating func admit(_ client: Client) -> Bool {
        guard !isFull(user: client), hasFreeConnection(for: client.rank) else { return false }
        users[client.user, default: 0] += 1
        ranks[client.rank, default: 0] += 1
        count += 1
        return true
    }

    /// Removes an admitted client from the count.
    mutating func leave(_ client: Client) {
        guard let ofUser = users[client.user] else { return }
        users[client.user] = ofUser == 1 ? nil : ofUser - 1
        ranks[client.rank, default: 1] -= 1
        count -= 1
    }

    /// Whether a user has reached the limit of connections for one user. It does not apply to root.
    private func isFull(user client: Client) -> Bool {
        client.rank != .root && users[client.user, default: 0] >= limits.clientsPerUser
    }

    private func hasFreeConnection(for rank: Rank) -> Bool {
        guard count < limits.clients else { return false }
        let unprivileged = ranks[.unprivileged, default: 0]
        let others = unprivileged + ranks[.privileged, default: 0]
        // Each of these numbers decreases by one if a client of this rank or a lower rank gives way.
        switch rank {
        case .root: return true
        case .privileged: return others < limits.clients - limits.clientsKeptForRoot
        case .unprivileged:
            return others < limits.clients - limits.clientsKeptForRoot
                && unprivileged < limits.clients - limits.clientsKeptForPrivileged
        }
    }

    // MARK: Giving way

    /// The index of the connection that gives way to a newcomer that was not admitted; nil: the newcomer is turned
    /// away.
    func displaced(by newcomer: Client, among occupants: [Occupant], now: Instant) -> Int? {
        let candidates = occupants.indices.filter { occupants[$0].client.rank <= newcomer.rank }
        let own = candidates.filter { occupants[$0].client.user == newcomer.user }
        // Calls in progress do not give way to a newcomer of the same user.
        if isFull(user: newcomer) { return first(of: own, occupants, sparingWork: true) }
        if let abandoned = candidates.first(where: { occupants[$0].activity == .abandoned }) { return abandoned }
        guard let lowest = candidates.map({ occupants[$0].client.rank }).min() else { return nil }
        let others = candidates.filter {
            occupants[$0].client.rank == lowest
                && (lowest < newcomer.rank || occupants[$0].client.user != newcomer.user)
        }
        var counts: [UInt32: Int] = [:]
        for index in others { counts[occupants[index].client.user, default: 0] += 1 }
        let most = counts.values.max() ?? 0
        // A newcomer displaces a user of the same rank only if that user keeps at least as many connections.
        guard lowest < newcomer.rank || own.isEmpty || most > own.count + 1 else {
            return first(of: own, occupants, sparingWork: true)
        }
        let ofLargest = others.filter { counts[occupants[$0].client.user] == most }
        return first(of: ofLargest, occupants, settledBefore: most == 1 ? now - Self.settling : nil)
    }

    /// The connection whose loss matters least: an abandoned connection first, then the one that has waited longest.
    ///
    /// Where calls in progress do not give way, a queued connection does: a crowd may arrive faster than the server looks
    /// at it, and then the last one counts most, as if the server had looked in between.
    private func first(
        of indices: [Int], _ occupants: [Occupant], sparingWork: Bool = false, settledBefore: Instant? = nil
    ) -> Int? {
        let ordered = indices.compactMap { index -> (index: Int, tier: Int, since: Instant)? in
            let occupant = occupants[index]
            if let settledBefore, occupant.accepted > settledBefore { return (index, 5, occupant.accepted) }
            switch occupant.activity {
            case .abandoned: return (index, 0, occupant.accepted)
            case .waiting(let since): return (index, 1, since)
            case .following(let since): return (index, 2, since)
            case .queued(let since): return (index, 3, since)
            case .working: return sparingWork ? nil : (index, 4, occupant.accepted)
            }
        }
        return ordered.min { ($0.tier, $0.since) < ($1.tier, $1.since) }?.index
    }
}
