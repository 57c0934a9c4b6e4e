/// Tracks any number of targets: its input is the kernel's events and replies, its output is the changes to publish.
///
/// It does no input or output and reads no clock. The caller applies events to ``tables``, queries the kernel for
/// ``queries`` after a burst, and passes the replies to ``look(_:at:)``.
struct ReachabilityMachine: Sendable {
    /// The changes to publish after an update, in this order: the epoch, the facts, the firings.
    struct Outcome: Hashable, Sendable {
        /// The new epoch, if one began.
        var epoch: UInt64?
        var changes: [Change] = []
        /// Whether the kernel left queries unanswered, so that they have to be repeated.
        var isIncomplete = false
    }

    struct Change: Hashable, Sendable {
        var fact: NetworkFact
        /// The detail of the signal, if it fires.
        var firing: String?
    }

    private struct Entry {
        var snapshot: NetworkSnapshot
        var fact: NetworkFact
        /// The number of events since the target is followed that were neither a firing nor a loss.
        var minor: UInt64 = 0
    }

    var tables = KernelTables()
    private var entries: [NetworkTarget: Entry] = [:]
    /// In the order in which they were added, so that changes are published in that order.
    private var targets: [NetworkTarget] = []
    private(set) var epoch: UInt64 = 0
    private(set) var fired: UInt64 = 0
    private(set) var minor: UInt64 = 0
    /// Why netlink is not available, so that everything is assumed to be reachable; nil: it is available.
    private(set) var unavailableReason: String?
    var isUnavailable: Bool { unavailableReason != nil }

    /// The addresses to query.
    var queries: Set<IPAddress> { isUnavailable ? [] : Set(targets.flatMap(\.addresses)) }

    /// Adds a target, with the kernel's replies for its addresses. The first state only returns a fact.
    mutating func add(
        _ target: NetworkTarget, _ answers: [IPAddress: RouteAnswer], at now: ContinuousClock.Instant
    ) -> NetworkFact {
        if let entry = entries[target] { return entry.fact }
        var snapshot = NetworkSnapshot()
        for address in target.addresses where !isUnavailable {
            snapshot.states[address.family] = state(of: address, answers) ?? .unreachable(.noRoute)
        }
        let fact = NetworkFact(target, snapshot, unknownBecause: unavailableReason, at: now, epoch: epoch)
        entries[target] = Entry(snapshot: snapshot, fact: fact)
        targets.append(target)
        return fact
    }

    /// The number of minor events of a target since it is followed.
    func minor(of target: NetworkTarget) -> UInt64 { entries[target]?.minor ?? 0 }

    mutating func remove(_ target: NetworkTarget) {
        guard entries.removeValue(forKey: target) != nil else { return }
        targets.removeAll { $0 == target }
    }

    /// Begins an epoch for all targets, whatever the next update finds: earlier connections are obsolete.
    mutating func beginEpoch(at now: ContinuousClock.Instant) -> Outcome {
        var outcome = Outcome()
        begin(&outcome)
        for target in targets {
            guard var entry = entries[target] else { continue }
            entry.fact.epoch = epoch
            entry.fact.changedAt = now
            entries[target] = entry
            outcome.changes.append(Change(fact: entry.fact))
        }
        return outcome
    }

    /// Compares the current state with the previous one.
    ///
    /// - Parameters:
    ///   - received: Whether the kernel sent events. For a target without a change they count as minor.
    ///   - before: Changes to publish first; the changes found here belong to its epoch.
    mutating func look(
        _ answers: [IPAddress: RouteAnswer], received: Bool = false, at now: ContinuousClock.Instant,
        after before: Outcome = Outcome()
    ) -> Outcome {
        var outcome = before
        for target in targets {
            guard let entry = entries[target] else { continue }
            var snapshot = entry.snapshot
            for address in target.addresses {
                guard let state = state(of: address, answers) else {
                    outcome.isIncomplete = true
                    continue
                }
                snapshot.states[address.family] = state
            }
            if received, snapshot == entry.snapshot {
                entries[target]?.minor += 1
                minor += 1
            }
            apply(snapshot, to: target, entry, at: now, &outcome)
        }
        return outcome
    }

    /// Netlink is not available any more, for this reason, and everything is assumed to be reachable.
    mutating func becomeUnavailable(
        _ reason: String, at now: ContinuousClock.Instant, after before: Outcome = Outcome()
    ) -> Outcome {
        unavailableReason = reason
        var outcome = before
        for target in targets {
            guard var entry = entries[target] else { continue }
            let wasReachable = entry.fact.isReachable
            if !wasReachable { begin(&outcome) }
            let since = entry.fact.since
            entry.fact = NetworkFact(target, NetworkSnapshot(), unknownBecause: reason, at: now, epoch: epoch)
            if wasReachable { entry.fact.since = since }
            entries[target] = entry
            if !wasReachable { fired += 1 }
            outcome.changes.append(
                Change(fact: entry.fact, firing: wasReachable ? nil : "reachability is no longer known"))
        }
        return outcome
    }

    private func state(of address: IPAddress, _ answers: [IPAddress: RouteAnswer]) -> PathState? {
        answers[address].flatMap { PathState($0, to: address, tables: tables) }
    }

    /// All changes of one update begin one epoch.
    private mutating func begin(_ outcome: inout Outcome) {
        guard outcome.epoch == nil else { return }
        epoch += 1
        outcome.epoch = epoch
    }

    private mutating func apply(
        _ snapshot: NetworkSnapshot, to target: NetworkTarget, _ entry: Entry, at now: ContinuousClock.Instant,
        _ outcome: inout Outcome
    ) {
        let delta = NetworkChange(from: entry.snapshot, to: snapshot)
        if delta == .nothing { return }
        if delta == .becameReachable || delta == .pathChanged { begin(&outcome) }
        var fact = NetworkFact(target, snapshot, at: now, epoch: entry.fact.epoch)
        var firing: String?
        var ignored = entry.minor
        switch delta {
        case .becameReachable:
            fact.epoch = epoch
            firing = "reachable \(fact)"
        case .pathChanged:
            fact.since = entry.fact.since
            fact.epoch = epoch
            firing = "path changed: \(fact)"
        case .lost: break  // only the fact changes: without a network a refresh would fail
        case .minor, .nothing:
            fact.since = entry.fact.since
            fact.changedAt = entry.fact.changedAt
            minor += 1
            ignored += 1
        }
        if firing != nil { fired += 1 }
        entries[target] = Entry(snapshot: snapshot, fact: fact, minor: ignored)
        outcome.changes.append(Change(fact: fact, firing: firing))
    }
}
