import CNetlink
public import FreshetEventLoop
package import FreshetSignals
import Synchronization

/// The signal `network`, and whether and how any number of targets is reachable.
///
/// It lists the kernel's links and addresses, follows them and the routes and rules by netlink, and after each burst
/// of changes asks the kernel how it would reach each target: policy rules, metrics and source selection are the
/// kernel's, not guessed. It needs no privileges, and wakes for nothing but the kernel's word.
///
/// ```swift
/// let monitor = NetworkMonitor(loop) { epoch in connections.dropIdle(before: epoch) }
/// let watch = monitor.watch(.elsewhere)
/// if watch.fact.isReachable { … }
/// for await _ in watch.signal { … }        // became reachable, or is reached by another path
/// ```
///
/// **What fires.** A target became reachable, or is reached by another gateway, link or source address. Losing it
/// changes the fact and fires nothing. What comes and goes beside it is counted as minor.
///
/// **Epochs.** Connections from before a change of path hang until they time out. So each look that fires begins a new
/// epoch first: the hook is called, then the facts change, then the signals fire; all on the loop's thread, in this
/// order. Who knows of another reason (the machine slept) begins one by ``beginEpoch()``.
///
/// **Threading.** All methods may be called from any thread.
public final class NetworkMonitor: Sendable {
    /// The name of the signal.
    public static let signalName = "network"

    /// Whether the kernel can be asked.
    public enum Availability: Hashable, Sendable {
        case available
        /// Every target is taken for reachable, and nothing fires. The reason is a sentence for people.
        case unavailable(reason: String)
    }

    /// How often what happened.
    public struct Counts: Hashable, Sendable {
        /// Firings, of all targets.
        public var fired: UInt64 = 0
        /// What the kernel said and was neither a firing nor a loss, of all targets: a lifetime, another link, a second
        /// family. What came between two turns of the loop is one.
        public var minor: UInt64 = 0
        /// How often links and addresses were listed anew: once at the start, and after each loss of messages.
        public var listings: UInt64 = 0
    }

    /// Bytes that the kernel may queue for us: some hundred messages. It takes no more than net.core.rmem_max.
    static let defaultReceiveBuffer: Int32 = 256 * 1_024
    /// The most datagrams that are read before the kernel is asked: a flood must not hold up the loop.
    static let datagramsPerTurn = 1_024
    /// How long after the last message the kernel is asked once more. It announces some changes before they are in
    /// force: a deleted address, microseconds before the routes that go with it, of which it says nothing.
    static let settleTime: Duration = .milliseconds(100)
    /// How often that wait is doubled while the kernel cannot answer (no memory): up to 51 s between two attempts.
    static let settleDoublings = 9
    /// How often a listing that was interrupted is begun again at once; after that, when it has become quiet.
    static let listingsPerTurn = 8

    private struct State {
        /// Nil: netlink is missing.
        var sockets: Sockets?
        var availability: Availability
        var machine = ReachabilityMachine()
        var watches: [NetworkTarget: WeakWatch] = [:]
        var nextWatch: UInt64 = 0
        var listings: UInt64 = 0
        var settledLooks: UInt64 = 0
        var needsListing = true
        /// The kernel said something since the directly connected networks were published last.
        var hasDirectNews = true
        var directRevision: UInt64 = 0
        /// Looks in a row that left questions open.
        var incompleteLooks = 0
    }

    struct Sockets {
        /// Hears what changes.
        let events: NetlinkSocket
        /// Asks. Apart, so that an answer never waits behind a flood of events.
        let questions: NetlinkSocket

        init(receiveBuffer: Int32) throws(NetlinkError) {
            events = try NetlinkSocket(
                groups: NetworkMonitor.groups, optionalGroups: [RTNLGRP_NEXTHOP], receiveBuffer: receiveBuffer)
            questions = try NetlinkSocket(receiveBuffer: NetworkMonitor.defaultReceiveBuffer)
        }
    }

    private struct WeakWatch {
        weak var watch: NetworkWatch?
        let identifier: UInt64
    }

    /// The directly connected networks of this machine: a number that is another one after each burst of changes of links,
    /// addresses, routes and rules, and after ``beginEpoch()``. Nil: there is no such network, or nobody knows.
    ///
    /// A host on such a network can be reached while ``NetworkTarget/elsewhere`` is not. Which hosts are there is not known.
    package let directNetworks = CurrentValue<UInt64?>(nil)

    private let trigger: Trigger
    private let onEpoch: @Sendable (UInt64) -> Void
    private let state: Mutex<State>
    private let descriptorWatch = Mutex<DescriptorWatch?>(nil)
    private let settleTimer = Mutex<LoopTimer?>(nil)

    /// Starts to follow the kernel, in the network namespace of the calling thread.
    ///
    /// It always succeeds: see ``availability``.
    ///
    /// - Parameters:
    ///   - loop: where the kernel is listened to.
    ///   - onEpoch: called on the loop's thread with the number of an epoch that begins, before anything else hears of
    ///     it. The first epoch, at the start, is 0. It must not block.
    public convenience init(_ loop: EventLoop, onEpoch: @escaping @Sendable (UInt64) -> Void = { _ in }) {
        self.init(
            loop, onEpoch: onEpoch,
            open: { () throws(NetlinkError) in try Sockets(receiveBuffer: Self.defaultReceiveBuffer) })
    }

    init(
        _ loop: EventLoop, onEpoch: @escaping @Sendable (UInt64) -> Void, open: () throws(NetlinkError) -> Sockets
    ) {
        self.onEpoch = onEpoch
        trigger = Trigger(Self.signalName)
        var descriptor: Int32?
        do {
            let sockets = try open()
            descriptor = sockets.events.descriptor
            state = Mutex(State(sockets: sockets, availability: .available))
        } catch {
            state = Mutex(State(sockets: nil, availability: .available))
            _ = state.withLock { Self.goBlind(&$0, reason: Self.explain(error), at: .now) }
        }
        guard let descriptor else { return }
        settleTimer.withLock { $0 = LoopTimer(loop, named: "network") { [weak self] in self?.turn(settled: true) } }
        // Subscribed before the first listing: what changes in between is heard.
        let isListed = state.withLock { state in
            Self.list(&state)
            return !state.needsListing
        }
        if !isListed { settleTimer.withLock { $0 }?.arm(at: .now + Self.settleTime) }
        directNetworks.value = state.withLock { Self.direct(&$0) }
        do {
            let watch = try loop.watch(descriptor, for: .read, named: "network") { [weak self] _ in
                self?.turn(settled: false)
            }
            descriptorWatch.withLock { $0 = watch }
        } catch {
            _ = state.withLock { Self.goBlind(&$0, reason: Self.explain(error), at: .now) }
        }
    }

    deinit {
        // Before the sockets are closed.
        descriptorWatch.withLock { $0 }?.cancel()
    }

    private static let groups: [rtnetlink_groups] = [
        RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
        RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE,
    ]

    private static func explain(_ error: some Error) -> String {
        "the kernel cannot be asked for its routes (\(error)): every network is taken for reachable; "
            + "allow AF_NETLINK in RestrictAddressFamilies="
    }

    /// Whether the kernel can be asked. Say it once, at the start.
    public var availability: Availability { state.withLock { $0.availability } }

    /// How often what happened.
    public var counts: Counts {
        state.withLock {
            Counts(fired: $0.machine.fired, minor: $0.machine.minor, listings: $0.listings)
        }
    }

    /// How often the kernel said something that did not matter to a target, since that is followed.
    public func minorChanges(of target: NetworkTarget) -> UInt64 { state.withLock { $0.machine.minor(of: target) } }

    /// How often the kernel was asked once more, some time after its last word; for tests.
    var settledLooks: UInt64 { state.withLock { $0.settledLooks } }

    /// The present epoch.
    public var epoch: UInt64 { state.withLock { $0.machine.epoch } }

    // MARK: Targets

    /// Follows a target for as long as the watch is kept. Who asks for a target that is followed gets the same watch.
    public func watch(_ target: NetworkTarget) -> NetworkWatch {
        state.withLock { state in
            if let watch = state.watches[target]?.watch { return watch }
            state.machine.remove(target)  // the end of an earlier watch may still be on its way
            var answers: [IPAddress: RouteAnswer] = [:]
            if let sockets = state.sockets {
                for address in target.addresses { answers[address] = sockets.questions.route(to: address) }
            }
            let fact = state.machine.add(target, answers, at: .now)
            state.nextWatch += 1
            let identifier = state.nextWatch
            let watch = NetworkWatch(target, fact, trigger.signal(activatedBy: target)) { [weak self] in
                self?.unwatch(target, identifier)
            }
            state.watches[target] = WeakWatch(watch: watch, identifier: identifier)
            return watch
        }
    }

    private func unwatch(_ target: NetworkTarget, _ identifier: UInt64) {
        state.withLock { state in
            guard state.watches[target]?.identifier == identifier else { return }
            state.watches[target] = nil
            state.machine.remove(target)
        }
    }

    // MARK: Following

    /// Begins an epoch for all targets, although the kernel said nothing: to be called on the loop's thread when the
    /// machine woke up, since connections and answers of the name service from before its sleep are worth nothing.
    ///
    /// Links and addresses are listed anew and the kernel is asked, now and once more soon: after a sleep it may show
    /// for a while what was before. The hook is called and the facts have changed when this returns; the signal fires
    /// only if a path is another one.
    public func beginEpoch() {
        turn(settled: false, beginsEpoch: true)
    }

    /// Fires the signal of a target by hand, as if its path had changed: an epoch begins first. What is known of the
    /// network stays. To be called on the loop's thread.
    package func raise(_ target: NetworkTarget, _ detail: String) {
        beginEpoch()
        trigger.activate(for: target, detail)
    }

    /// Reads what there is, asks, and tells. On the loop's thread.
    private func turn(settled: Bool, beginsEpoch: Bool = false) {
        let instant = ContinuousClock.Instant.now
        let turned = state.withLock { state -> (ReachabilityMachine.Outcome, [NetworkWatch], Duration?)? in
            var outcome = ReachabilityMachine.Outcome()
            if beginsEpoch {
                outcome = state.machine.beginEpoch(at: instant)
                state.needsListing = true
                state.hasDirectNews = true
            }
            guard let looked = Self.look(&state, at: instant, after: outcome, always: settled) else { return nil }
            let watches = looked.changes.compactMap { state.watches[$0.fact.target]?.watch }
            return (looked, watches, Self.settle(&state, looked, settled: settled))
        }
        guard let (outcome, watches, wait) = turned else { return }
        if let wait {
            settleTimer.withLock { $0 }?.arm(at: instant + wait)
        } else if availability != .available {
            descriptorWatch.withLock { $0 }?.cancel()
        }
        if let epoch = outcome.epoch { onEpoch(epoch) }
        defer { publishDirectNetworks(settled: settled) }
        for change in outcome.changes {
            watches.first { $0.target == change.fact.target }?.set(change.fact)
        }
        for change in outcome.changes {
            if let firing = change.firing { trigger.activate(for: change.fact.target, firing) }
        }
    }

    /// When a burst is over, so that it is one change.
    private func publishDirectNetworks(settled: Bool) {
        let direct = state.withLock { settled || $0.sockets == nil ? .some(Self.direct(&$0)) : UInt64??.none }
        if let direct, direct != directNetworks.value { directNetworks.value = direct }
    }

    private static func direct(_ state: inout State) -> UInt64? {
        if state.hasDirectNews { state.directRevision += 1 }
        state.hasDirectNews = false
        return state.sockets != nil && state.machine.tables.hasDirectNetwork ? state.directRevision : nil
    }

    /// How long to wait before the kernel is asked once more; nil: until it says something.
    private static func settle(
        _ state: inout State, _ outcome: ReachabilityMachine.Outcome, settled: Bool
    ) -> Duration? {
        guard state.sockets != nil else { return nil }
        state.incompleteLooks = outcome.isIncomplete ? min(state.incompleteLooks + 1, settleDoublings) : 0
        if !settled { return settleTime }
        return outcome.isIncomplete ? settleTime * (1 << state.incompleteLooks) : nil
    }

    /// Reads what there is, and asks the kernel if a path may be another one. Nil: what was read changes no path, such
    /// as a lifetime that is renewed each second, and nobody has to be asked or told.
    private static func look(
        _ state: inout State, at now: ContinuousClock.Instant, after before: ReachabilityMachine.Outcome, always: Bool
    ) -> ReachabilityMachine.Outcome? {
        guard let sockets = state.sockets else { return before }
        let followed = state.machine.tables.follow(limit: datagramsPerTurn) { sockets.events.receive() }
        if let failure = followed.failure {
            return goBlind(&state, reason: explain(failure), at: now, after: before)
        }
        guard always || followed.hasNews || followed.hasGaps || state.needsListing else { return nil }
        if always { state.settledLooks += 1 }
        if followed.hasNews || followed.hasGaps { state.hasDirectNews = true }
        if followed.hasGaps || state.needsListing { list(&state) }
        var answers: [IPAddress: RouteAnswer] = [:]
        for address in state.machine.questions { answers[address] = sockets.questions.route(to: address) }
        var outcome = state.machine.look(answers, heard: followed.count > 0, at: now, after: before)
        if state.needsListing { outcome.isIncomplete = true }
        return outcome
    }

    /// Lists links and addresses anew. What could not be listed stays as it was, and is listed at the next look.
    private static func list(_ state: inout State) {
        guard let socket = state.sockets?.questions else { return }
        let (count, isDone) = state.machine.tables.list(limit: listingsPerTurn) { () throws(NetlinkError) in
            try socket.dumpTables()
        }
        state.listings += UInt64(count)
        state.needsListing = !isDone
    }

    private static func goBlind(
        _ state: inout State, reason: String, at now: ContinuousClock.Instant,
        after before: ReachabilityMachine.Outcome = ReachabilityMachine.Outcome()
    ) -> ReachabilityMachine.Outcome {
        state.sockets = nil
        state.availability = .unavailable(reason: reason)
        return state.machine.goBlind(reason, at: now, after: before)
    }
}
