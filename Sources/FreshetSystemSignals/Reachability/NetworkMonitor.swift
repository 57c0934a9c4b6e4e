import CNetlink
public import FreshetEventLoop
package import FreshetSignals
import Synchronization

/// The signal `network`, and the reachability of any number of targets.
///
/// It lists the kernel's links and addresses, follows them and the routes and rules with netlink, and asks the kernel
/// for the route to each target after each burst of changes. So policy rules, metrics and source selection are the
/// kernel's, not guessed. It needs no privileges, and only wakes for messages of the kernel.
///
/// ```swift
/// let monitor = NetworkMonitor(loop) { epoch in connections.dropIdle(before: epoch) }
/// let watch = monitor.watch(.elsewhere)
/// if watch.fact.isReachable { … }
/// for await _ in watch.signal { … }        // became reachable, or is reached by another path
/// ```
///
/// **What fires.** A target became reachable, or is reached by another gateway, link or source address. A loss changes
/// the fact and does not fire. Other events of the kernel are counted as minor.
///
/// **Epochs.** Connections from before a change of path hang until they time out. So each update that fires begins a
/// new epoch: the hook is called first, then the facts change, then the signals fire, then observers get both; all on
/// the loop's thread, in this order. The readers of ``NetworkWatch/facts`` get the change in the loop's next iteration,
/// after everything that begins because of the signal. For another reason, such as a sleep of the machine, call ``beginEpoch()``.
///
/// **Threading.** All methods may be called from any thread.
public final class NetworkMonitor: Sendable {
    /// The name of the signal.
    public static let signalName = "network"

    /// Whether netlink can be used.
    public enum Availability: Hashable, Sendable {
        case available
        /// Every target is assumed to be reachable, and the signal does not fire. The reason is a sentence for people.
        case unavailable(reason: String)
    }

    /// Counters.
    public struct Counts: Hashable, Sendable {
        /// Firings, of all targets.
        public var fired: UInt64 = 0
        /// Events of the kernel, of all targets, that were neither a firing nor a loss: a lifetime, another link, a
        /// second family. Events in the same iteration of the loop count once.
        public var minor: UInt64 = 0
        /// How often links and addresses were listed: once at the start, and after each loss of messages.
        public var listings: UInt64 = 0
    }

    /// How many bytes the kernel may queue for us: some hundred messages. The kernel's limit is net.core.rmem_max.
    static let defaultReceiveBuffer: Int32 = 256 * 1_024
    /// The maximum number of datagrams to read before the kernel is asked for routes, so that a flood does not block
    /// the loop.
    static let datagramsPerUpdate = 1_024
    /// How long after the last message the kernel is asked once more. The kernel announces some changes before they
    /// take effect: a deleted address, microseconds before the removal of its routes, which is not announced.
    static let settleTime: Duration = .milliseconds(100)
    /// How often that delay is doubled while the kernel cannot answer (no memory): up to 51 s between two attempts.
    static let settleDoublings = 9
    /// How often an interrupted listing is repeated immediately; after that, it is repeated after the burst.
    static let listingAttempts = 8

    private struct State {
        /// Nil: netlink is not available.
        var sockets: Sockets?
        var availability: Availability
        var machine = ReachabilityMachine()
        var watches: [NetworkTarget: WeakWatch] = [:]
        var nextWatch: UInt64 = 0
        var listings: UInt64 = 0
        var settledLooks: UInt64 = 0
        var needsListing = true
        /// Whether events arrived since the directly connected networks were last published.
        var hasDirectChanges = true
        var directRevision: UInt64 = 0
        /// The number of successive updates with unanswered queries.
        var incompleteLooks = 0
    }

    struct Sockets {
        /// Receives changes.
        let events: NetlinkSocket
        /// Sends queries. A separate socket, so that a reply never waits behind a flood of events.
        let queries: NetlinkSocket

        init(receiveBuffer: Int32) throws(NetlinkError) {
            events = try NetlinkSocket(
                groups: NetworkMonitor.groups, optionalGroups: [RTNLGRP_NEXTHOP], receiveBuffer: receiveBuffer)
            queries = try NetlinkSocket(receiveBuffer: NetworkMonitor.defaultReceiveBuffer)
        }
    }

    private struct WeakWatch {
        weak var watch: NetworkWatch?
        let identifier: UInt64
    }

    /// The directly connected networks of this machine: a number that changes after each burst of changes of links,
    /// addresses, routes and rules, and after ``beginEpoch()``. Nil: there is no such network, or this is unknown.
    ///
    /// A host on such a network can be reachable while ``NetworkTarget/elsewhere`` is not. Which hosts are on the
    /// network is unknown.
    package let directNetworks = CurrentValue<UInt64?>(nil)

    private let trigger: Trigger
    private let onEpoch: @Sendable (UInt64) -> Void
    private let state: Mutex<State>
    private let descriptorWatch = Mutex<DescriptorWatch?>(nil)
    private let settleTimer = Mutex<LoopTimer?>(nil)
    /// The watches whose readers of ``NetworkWatch/facts`` have not got the last change.
    private let undelivered = Mutex<[NetworkWatch]>([])
    private let deliveryTimer = Mutex<LoopTimer?>(nil)

    /// Starts to follow the kernel, in the network namespace of the calling thread.
    ///
    /// It always succeeds: see ``availability``.
    ///
    /// - Parameters:
    ///   - loop: The event loop to use.
    ///   - onEpoch: Called on the loop's thread with the number of a new epoch, before facts and signals change. The
    ///     first epoch, at the start, is 0. It must not block.
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
            _ = state.withLock { Self.becomeUnavailable(&$0, reason: Self.explain(error), at: .now) }
        }
        deliveryTimer.withLock { $0 = LoopTimer(loop, named: "network") { [weak self] in self?.deliverFacts() } }
        guard let descriptor else { return }
        settleTimer.withLock { $0 = LoopTimer(loop, named: "network") { [weak self] in self?.update(settled: true) } }
        // Subscribe before the first listing, so that no change is lost.
        let isListed = state.withLock { state in
            Self.list(&state)
            return !state.needsListing
        }
        if !isListed { settleTimer.withLock { $0 }?.arm(at: .now + Self.settleTime) }
        directNetworks.value = state.withLock { Self.direct(&$0) }
        do {
            let watch = try loop.watch(descriptor, for: .read, named: "network") { [weak self] _ in
                self?.update(settled: false)
            }
            descriptorWatch.withLock { $0 = watch }
        } catch {
            _ = state.withLock { Self.becomeUnavailable(&$0, reason: Self.explain(error), at: .now) }
        }
    }

    deinit {
        // Cancel the watch before the sockets are closed.
        descriptorWatch.withLock { $0 }?.cancel()
    }

    private static let groups: [rtnetlink_groups] = [
        RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
        RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE,
    ]

    private static func explain(_ error: some Error) -> String {
        "cannot read the kernel's routes (\(error)); every network is assumed to be reachable; "
            + "allow AF_NETLINK in RestrictAddressFamilies="
    }

    /// Whether netlink can be used. Log it once, at the start.
    public var availability: Availability { state.withLock { $0.availability } }

    /// The counters.
    public var counts: Counts {
        state.withLock {
            Counts(fired: $0.machine.fired, minor: $0.machine.minor, listings: $0.listings)
        }
    }

    /// The number of minor events of a target since it is followed.
    public func minorChanges(of target: NetworkTarget) -> UInt64 { state.withLock { $0.machine.minor(of: target) } }

    /// The number of datagrams with questions to the kernel, for tests.
    var sentQueries: Int { state.withLock { $0.sockets?.queries.sentQueries ?? 0 } }

    /// How often the kernel was asked once more after a burst, for tests.
    var settledLooks: UInt64 { state.withLock { $0.settledLooks } }

    /// The current epoch.
    public var epoch: UInt64 { state.withLock { $0.machine.epoch } }

    // MARK: Targets

    /// Follows a target while the watch is alive. A target that is already followed returns the same watch.
    public func watch(_ target: NetworkTarget) -> NetworkWatch {
        state.withLock { state in
            if let watch = state.watches[target]?.watch { return watch }
            state.machine.remove(target)  // the end of an earlier watch may not have arrived yet
            let answers = state.sockets?.queries.routes(to: target.addresses) ?? [:]
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

    // MARK: Updates

    /// Begins an epoch for all targets without an event of the kernel. Call it on the loop's thread when the machine
    /// has resumed, because connections and DNS answers from before the sleep are obsolete.
    ///
    /// Links and addresses are listed again and the kernel is asked for routes, now and once more soon: after a sleep
    /// it may show the old state for a while. When this method returns, the hook was called and the facts have changed.
    /// The signal fires only if a path has changed.
    public func beginEpoch() {
        update(settled: false, beginsEpoch: true)
    }

    /// Fires the signal of a target as if its path had changed: an epoch begins first. The known state of the network
    /// is unchanged. Call it on the loop's thread.
    package func fire(_ target: NetworkTarget, _ detail: String) {
        update(settled: false, beginsEpoch: true, firing: (target, detail))
    }

    /// Reads events, asks for routes, and publishes changes. Called on the loop's thread.
    ///
    /// - Parameter request: A target whose signal fires in any case, and the detail.
    private func update(
        settled: Bool, beginsEpoch: Bool = false, firing request: (target: NetworkTarget, detail: String)? = nil
    ) {
        let instant = ContinuousClock.Instant.now
        let updated = state.withLock { state -> (ReachabilityMachine.Outcome, [NetworkWatch], Duration?)? in
            var outcome = ReachabilityMachine.Outcome()
            if beginsEpoch {
                outcome = state.machine.beginEpoch(at: instant)
                state.needsListing = true
                state.hasDirectChanges = true
            }
            guard let result = Self.look(&state, at: instant, after: outcome, always: settled) else { return nil }
            let watches = result.changes.compactMap { state.watches[$0.fact.target]?.watch }
            return (result, watches, Self.settle(&state, result, settled: settled))
        }
        guard let (outcome, watches, wait) = updated else { return }
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
        if let request { trigger.activate(for: request.target, request.detail) }
        var published: Set<NetworkTarget> = []
        for watch in watches where published.insert(watch.target).inserted { watch.publish() }
        guard !watches.isEmpty else { return }
        undelivered.withLock { $0 += watches }
        deliveryTimer.withLock { $0 }?.arm(at: instant)
    }

    /// Readers of facts log and display them, so they come after the runs that the signal starts.
    private func deliverFacts() {
        let watches = undelivered.withLock { watches in
            defer { watches = [] }
            return watches
        }
        for watch in watches { watch.deliver() }
    }

    /// Publishes after the end of a burst, so that a burst is one change.
    private func publishDirectNetworks(settled: Bool) {
        let direct = state.withLock { settled || $0.sockets == nil ? .some(Self.direct(&$0)) : UInt64??.none }
        if let direct, direct != directNetworks.value { directNetworks.value = direct }
    }

    private static func direct(_ state: inout State) -> UInt64? {
        if state.hasDirectChanges { state.directRevision += 1 }
        state.hasDirectChanges = false
        return state.sockets != nil && state.machine.tables.hasDirectNetwork ? state.directRevision : nil
    }

    /// How long to wait before the kernel is asked once more; nil: until its next event.
    private static func settle(
        _ state: inout State, _ outcome: ReachabilityMachine.Outcome, settled: Bool
    ) -> Duration? {
        guard state.sockets != nil else { return nil }
        state.incompleteLooks = outcome.isIncomplete ? min(state.incompleteLooks + 1, settleDoublings) : 0
        if !settled { return settleTime }
        return outcome.isIncomplete ? settleTime * (1 << state.incompleteLooks) : nil
    }

    /// Reads events, and asks the kernel for routes if a path may have changed. Nil: the events cannot change a path,
    /// such as a lifetime that is renewed each second, so there is nothing to ask or publish.
    private static func look(
        _ state: inout State, at now: ContinuousClock.Instant, after before: ReachabilityMachine.Outcome, always: Bool
    ) -> ReachabilityMachine.Outcome? {
        guard let sockets = state.sockets else { return before }
        let followed = state.machine.tables.follow(limit: datagramsPerUpdate) { sockets.events.receive() }
        if let failure = followed.failure {
            return becomeUnavailable(&state, reason: explain(failure), at: now, after: before)
        }
        guard always || followed.hasChanges || followed.hasGaps || state.needsListing else { return nil }
        if always { state.settledLooks += 1 }
        if followed.hasChanges || followed.hasGaps { state.hasDirectChanges = true }
        if followed.hasGaps || state.needsListing { list(&state) }
        let answers = sockets.queries.routes(to: state.machine.queries)
        var outcome = state.machine.look(answers, received: followed.count > 0, at: now, after: before)
        if state.needsListing { outcome.isIncomplete = true }
        return outcome
    }

    /// Lists links and addresses again. If that fails, the tables are unchanged, and the next update lists again.
    private static func list(_ state: inout State) {
        guard let socket = state.sockets?.queries else { return }
        let (count, isDone) = state.machine.tables.list(limit: listingAttempts) { () throws(NetlinkError) in
            try socket.dumpTables()
        }
        state.listings += UInt64(count)
        state.needsListing = !isDone
    }

    private static func becomeUnavailable(
        _ state: inout State, reason: String, at now: ContinuousClock.Instant,
        after before: ReachabilityMachine.Outcome = ReachabilityMachine.Outcome()
    ) -> ReachabilityMachine.Outcome {
        state.sockets = nil
        state.availability = .unavailable(reason: reason)
        return state.machine.becomeUnavailable(reason, at: now, after: before)
    }
}
