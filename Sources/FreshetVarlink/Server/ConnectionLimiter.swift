/// How many clients a server has, in all and for each user, and whether there is room for one more.
struct ConnectionLimiter {
    private let limits: VarlinkServer.Limits
    private var users: [UInt32: Int] = [:]
    private(set) var count = 0

    init(_ limits: VarlinkServer.Limits) { self.limits = limits }

    /// Counts a client in, unless that would pass a limit. Root's clients have no limit of their own.
    mutating func admit(user: UInt32) -> Bool {
        let ofUser = users[user, default: 0]
        let total = user == 0 ? limits.clients : limits.clients - limits.clientsKeptForRoot
        guard count < total, user == 0 || ofUser < limits.clientsPerUser else { return false }
        users[user] = ofUser + 1
        count += 1
        return true
    }

    /// Counts a client out that was admitted.
    mutating func leave(user: UInt32) {
        guard let ofUser = users[user] else { return }
        users[user] = ofUser == 1 ? nil : ofUser - 1
        count -= 1
    }
}
