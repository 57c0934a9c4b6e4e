/// Follows any number of targets: what the kernel said goes in, what to tell goes out.
///
/// It asks nobody and reads no clock. Who runs it feeds events into ``tables``, asks the kernel for ``questions`` once
/// a burst is over, and hands the answers to ``look(_:at:)``.
struct ReachabilityMachine: Sendable {
    /// What has to be told after a look, in this order: the epoch, the facts, the firings.
    struct Outcome: Hashable, Sendable {
        /// The epoch that began, if one did.
        var epoch: UInt64?
        var changes: [Change] = []
        /// The kernel left questions unanswered, so that it has to be asked again.
        var isIncomplete = false
    }

    struct Change: Hashable, Sendable {
        var fact: NetworkFact
        /// What the signal says, if it fires.
        var firing: String?
    }

    private struct Entry {
        var snapshot: NetworkSnapshot
        var fact: NetworkFact
        /// What was heard since it is followed, and was neither a firing nor a loss.
        var minor: UInt64 = 0
    }

    var tables = KernelTables()
    private var entries: [NetworkTarget: Entry] = [:]
    /// In the order in which they were added, so that what is told has an order too.
    private var targets: [NetworkTarget] = []
    private(set) var epoch: UInt64 = 0
    private(set) var fired: UInt64 = 0
    private(set) var minor: UInt64 = 0
    /// Why the kernel cannot be asked, so that everything is taken for reachable; nil: it can.
    private(set) var blindness: String?
    var isBlind: Bool { blindness != nil }

    /// The addresses to ask the kernel for.
    var questions: Set<IPAddress> { isBlind ? [] : Set(targets.flatMap(\.addresses)) }

    /// Adds a target, with the kernel's answers for its addresses. Nothing is told of a first look but the fact.
    mutating func add(
        _ target: NetworkTarget, _ answers: [IPAddress: RouteAnswer], at now: ContinuousClock.Instant
    ) -> NetworkFact {
        if let entry = entries[target] { return entry.fact }
        var snapshot = NetworkSnapshot()
        for address in target.addresses where !isBlind {
            snapshot.states[address.family] = state(of: address, answers) ?? .unreachable(.noRoute)
        }
        let fact = NetworkFact(target, snapshot, unknownBecause: blindness, at: now, epoch: epoch)
        entries[target] = Entry(snapshot: snapshot, fact: fact)
        targets.append(target)
        return fact
    }

    /// How often something was heard that did not matter to a target, since it is followed.
    func minor(of target: NetworkTarget) -> UInt64 { entries[target]?.minor ?? 0 }

    mutating func remove(_ target: NetworkTarget) {
        guard entries.removeValue(forKey: target) != nil else { return }
        targets.removeAll { $0 == target }
    }

    /// Connections from before are of no use any more, whatever a look finds: an epoch begins for all targets.
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

    /// Compares what is now with what was.
    ///
    /// - Parameters:
    ///   - heard: the kernel said that something changed. If a target is as it was, that was minor for it.
    ///   - before: what has to be told besides, and before; what is found belongs to its epoch.
    mutating func look(
        _ answers: [IPAddress: RouteAnswer], heard: Bool = false, at now: ContinuousClock.Instant,
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
            if heard, snapshot == entry.snapshot {
                entries[target]?.minor += 1
                minor += 1
            }
            apply(snapshot, to: target, entry, at: now, &outcome)
        }
        return outcome
    }

    /// From now on nobody can be asked, for this reason, and everything counts as reachable.
    mutating func goBlind(
        _ reason: String, at now: ContinuousClock.Instant, after before: Outcome = Outcome()
    ) -> Outcome {
        blindness = reason
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

    /// All that one look finds begins one epoch.
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
        case .lost: break  // the fact says so; nothing can be fetched, so nothing fires
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
