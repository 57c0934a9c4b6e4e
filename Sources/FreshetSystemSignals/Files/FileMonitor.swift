public import FreshetEventLoop
import FreshetSignals
import Synchronization

/// Follows any number of paths with one inotify(7) descriptor, and fires a signal for each path when its file changes.
///
/// ```swift
/// let monitor = FileMonitor(loop)
/// let watch = monitor.watch("/etc/hosts")
/// for await _ in watch.signal { … }
/// ```
///
/// **What fires.** The file was closed after writing, replaced by a rename, created or removed. The path and its
/// directories need not exist: directories are watched as they appear. Symbolic links anywhere in the path are
/// followed; a change of a link and a change of its target both count. For a directory its entries count, but not their
/// contents. A change of rights or times does not fire. Opening a file for writing and closing it counts as a write, as
/// touch(1) does. Writes through a memory map do not fire, and neither do changes that another machine makes on a
/// network file system: the kernel does not report them.
///
/// **Bursts.** All events of a path until the end of a check are one firing, and one iteration of the loop reads a
/// bounded number of events. When the kernel's queue overflows, every path is checked, and changed ones fire.
///
/// **Availability.** A path that cannot be watched is not an error: ``FileFact/obstacle`` shows it, and other paths
/// still work. The monitor retries after a second, and then with pauses that double up to five minutes.
///
/// **File systems that do not respond.** A path on a network file system may block a system call for ever. So separate
/// threads check paths, one for each check that hangs, at most ``looksAtOnce``; idle threads end. Only ``watch(_:)``
/// waits for the first check, and for a short time only.
///
/// **Threading.** All methods may be called from any thread.
public final class FileMonitor: Sendable {
    /// The name of the occurrences of a path's signal.
    public static func signalName(of path: String) -> String { "file \(path)" }

    /// Counters.
    public struct Counts: Hashable, Sendable {
        /// Firings, of all paths.
        public var fired: UInt64 = 0
        /// Checks after which nothing fired.
        public var minor: UInt64 = 0
        /// How often events were lost, so that all paths were checked.
        public var overflows: UInt64 = 0
    }

    /// The maximum number of simultaneous checks. If that many hang, other paths wait, and their facts show it.
    public static let looksAtOnce = 8
    /// How long ``watch(_:)`` waits for the first check: enough for a busy disk.
    static let timeout: Duration = .seconds(1)
    /// The same while another check hangs, so that a caller with many dead paths does not wait for each.
    static let shortTimeout: Duration = .milliseconds(50)
    /// The maximum number of event buffers (16 KiB each) to read in one iteration of the loop.
    static let readsPerTurn = 16
    /// How often one check repeats a path that changes during the check; further attempts belong to the next check.
    static let looksPerTurn = 8
    /// The maximum number of events that are kept for checks in progress. A check that missed events is repeated.
    static let recentEvents = 4_096

    struct Followed {
        weak var watch: FileWatch?
        let path: String
        var resolution = PathResolution()
        var fact = FileFact(exists: false)
        /// The obstacle that the last check found.
        var obstacle: FileWatchLimit?
        /// Set while a caller waits for the first check.
        var firstLook: Latch?
    }

    struct State {
        /// Nil: no path has been watched yet, or inotify is not available.
        var inotify: InotifyDescriptor?
        var descriptorWatch: DescriptorWatch?
        var failure: SystemCallError?
        var table = FileWatchTable()
        var agenda = RetrySchedule()
        var followed: [FileWatchTable.Follower: Followed] = [:]
        /// By the bytes of the path: two paths may differ only in their Unicode normalization.
        var followers: [[UInt8]: FileWatchTable.Follower] = [:]
        var next: FileWatchTable.Follower = 0
        var counts = Counts()
        /// Events that were read during checks: a check may have set a watch that is not in the table yet.
        var recent: [InotifyEvent] = []
        /// The number of events that were read before the first of ``recent``.
        var recentStart: UInt64 = 0
        var alarm: (any Alarm)?
        /// The instant for which ``alarm`` is armed.
        var armed: ContinuousClock.Instant?
    }

    /// A check that has to be started.
    struct Order {
        let follower: FileWatchTable.Follower
        let path: String
        let events: FileEvents
        let steps: [PathResolution.Step]
        /// The index of the first event that the check may have missed.
        let mark: UInt64
    }

    /// A change to publish after the lock was released.
    private struct Change {
        var watch: FileWatch
        var fact: FileFact?
        var detail: String?
    }

    private let loop: EventLoop
    private let clock: any AlarmClock
    let calls: FileCalls
    private let timeout: Duration
    private let workers = WorkerPool(threads: looksAtOnce)
    private let onChange: @Sendable (_ path: String, FileFact, _ firing: String?) -> Void
    let state = Mutex(State())

    /// Makes a monitor. It costs nothing until a path is watched.
    ///
    /// - Parameters:
    ///   - loop: The event loop to use.
    ///   - onChange: Called on the loop's thread when a path's fact has changed or before its signal fires, then with
    ///     the firing's detail. It must not block.
    public convenience init(
        _ loop: EventLoop,
        onChange: @escaping @Sendable (_ path: String, FileFact, _ firing: String?) -> Void = { _, _, _ in }
    ) {
        self.init(loop, clock: loop, calls: .kernel, onChange: onChange)
    }

    /// - Parameters:
    ///   - clock: The clock for retries; tests replace it.
    ///   - calls: The system calls; tests replace them.
    ///   - timeout: How long to wait for the first check.
    init(
        _ loop: EventLoop, clock: any AlarmClock, calls: FileCalls, timeout: Duration = FileMonitor.timeout,
        onChange: @escaping @Sendable (_ path: String, FileFact, _ firing: String?) -> Void = { _, _, _ in }
    ) {
        self.loop = loop
        self.clock = clock
        self.calls = calls
        self.timeout = timeout
        self.onChange = onChange
    }

    /// The counters.
    public var counts: Counts { state.withLock { $0.counts } }

    /// The number of watched directories, for tests.
    var watchCount: Int { state.withLock { $0.table.count } }

    // MARK: Paths

    /// Follows an absolute path while the watch is alive. A path that is already followed returns the same watch. Later
    /// changes fire.
    ///
    /// It waits for the first check of the path, for a second at most. If the check takes longer, the fact shows that,
    /// and a file that is found later counts as created.
    public func watch(_ path: String) -> FileWatch {
        let (watch, follower, latch, order) = state.withLock { state in
            if let follower = state.followers[Array(path.utf8)], let followed = state.followed[follower],
                let watch = followed.watch
            {
                return (watch, follower, followed.firstLook, Order?.none)
            }
            open(&state)
            state.next += 1
            let follower = state.next
            let watch = FileWatch(path, FileFact(exists: false)) { [weak self] in self?.unwatch(path, follower) }
            let latch = Latch()
            state.followed[follower] = Followed(watch: watch, path: path, firstLook: latch)
            state.followers[Array(path.utf8)] = follower
            return (watch, follower, latch, begin(follower, [.look, .rewatch], &state))
        }
        if let order { start(order) }
        if let latch { wait(for: latch, of: follower, watch) }
        return watch
    }

    private func wait(for latch: Latch, of follower: FileWatchTable.Follower, _ watch: FileWatch) {
        let timeout = state.withLock { $0.agenda.isHeldUp } ? min(Self.shortTimeout, timeout) : timeout
        guard !latch.wait(for: timeout) else { return }
        let fact = state.withLock { state -> FileFact? in
            // The check may have ended just now.
            guard state.followed[follower]?.firstLook != nil else { return nil }
            state.followed[follower]?.firstLook = nil
            state.followed[follower]?.fact.obstacle = FileWatchLimit.noAnswer.description
            state.agenda.isSlow(follower)
            return state.followed[follower]?.fact
        }
        if let fact { watch.set(fact) }
    }

    private func unwatch(_ path: String, _ follower: FileWatchTable.Follower) {
        state.withLock { state in
            guard state.followed.removeValue(forKey: follower) != nil else { return }
            if state.followers[Array(path.utf8)] == follower { state.followers[Array(path.utf8)] = nil }
            for watch in state.table.set(follower, to: []) { state.inotify?.remove(watch) }
            state.agenda.remove(follower, at: clock.now)
            arm(&state)
        }
    }

    private func open(_ state: inout State) {
        if state.alarm == nil { state.alarm = clock.makeAlarm { [weak self] in self?.expire() } }
        guard state.inotify == nil else { return }
        do throws(SystemCallError) {
            let inotify = try calls.open()
            state.descriptorWatch = try loop.watch(inotify.rawValue, for: .read, named: "files") { [weak self] _ in
                self?.turn()
            }
            state.inotify = inotify
            state.failure = nil
        } catch {
            state.failure = error
        }
    }

    // MARK: Processing

    /// Reads events, and starts checks of their paths. Called on the loop's thread.
    private func turn() {
        let orders = state.withLock { state in
            var received: [FileWatchTable.Follower: FileEvents] = [:]
            let table = state.table
            let isLooking = state.agenda.isLooking
            var recent: [InotifyEvent] = []
            var overflows: UInt64 = 0
            state.inotify?.read(atMost: Self.readsPerTurn) { event in
                if event.events.contains(.overflowed) { overflows += 1 }
                if isLooking { recent.append(event) }
                table.receive(event, &received)
            }
            state.counts.overflows += overflows
            state.remember(recent)
            // In the order in which the paths were added.
            return received.sorted { $0.key < $1.key }.compactMap { begin($0.key, $0.value, &state) }
        }
        for order in orders { start(order) }
    }

    /// Reports checks that do not end, and starts retries and delayed checks. Called on the clock's thread.
    private func expire() {
        let (changes, orders) = state.withLock { state -> ([Change], [Order]) in
            state.armed = nil
            let (slow, again) = state.agenda.due(at: clock.now)
            var changes: [Change] = []
            for follower in slow {
                guard let watch = state.followed[follower]?.watch else { continue }
                state.followed[follower]?.fact.obstacle = FileWatchLimit.noAnswer.description
                changes.append(Change(watch: watch, fact: state.followed[follower]?.fact))
            }
            if !again.isEmpty { open(&state) }
            let delayed = state.agenda.delayedLooks(at: clock.now)
            let orders =
                again.compactMap { begin($0, [.look, .rewatch], &state) }
                + delayed.compactMap { begin($0.follower, $0.events, &state) }
            arm(&state)
            return (changes, orders)
        }
        for item in changes { notify(item) }
        for order in orders { start(order) }
    }

    private func arm(_ state: inout State) {
        // The caller of ``watch(_:)`` waits for a first check, so a first check needs no timer.
        let deadline = state.agenda.deadline
        guard deadline != state.armed else { return }
        state.armed = deadline
        if let deadline { state.alarm?.arm(at: deadline) } else { state.alarm?.disarm() }
    }

    /// Records a check to start, unless one is already in progress.
    private func begin(_ follower: FileWatchTable.Follower, _ events: FileEvents, _ state: inout State) -> Order? {
        guard state.followed[follower] != nil else { return nil }
        guard state.agenda.receive(follower, events, at: clock.now) else {
            // A look that is delayed needs the timer.
            arm(&state)
            return nil
        }
        return makeOrder(follower, events, &state)
    }

    private func makeOrder(_ follower: FileWatchTable.Follower, _ events: FileEvents, _ state: inout State) -> Order? {
        guard let followed = state.followed[follower] else { return nil }
        if followed.firstLook == nil { arm(&state) }
        return Order(
            follower: follower, path: followed.path, events: events, steps: followed.resolution.steps,
            mark: state.recentStart + UInt64(state.recent.count))
    }

    private func start(_ order: Order) {
        workers.perform("a look at a file") { [weak self] in
            guard let self else { return }
            let look = self.look(order)
            // The waiting caller may be on any thread, even the loop's.
            guard !self.tookFirst(look, of: order) else { return }
            self.loop.perform(named: "files") { [weak self] in self?.ended(order, look) }
        }
    }

    /// Applies the first check for a waiting caller: it is the initial state, not a change.
    private func tookFirst(_ look: FileObservation, of order: Order) -> Bool {
        guard let (latch, next) = setFirst(look, of: order) else { return false }
        // Nothing here keeps the watch alive any more: it ends when the caller releases it.
        latch.open()
        if let next { start(next) }
        return true
    }

    private func setFirst(_ look: FileObservation, of order: Order) -> (Latch, Order?)? {
        let (watch, fact, result) = state.withLock { state -> (FileWatch?, FileFact?, (Latch, Order?)?) in
            guard let followed = state.followed[order.follower], let latch = followed.firstLook else {
                return (nil, nil, nil)
            }
            state.followed[order.follower]?.firstLook = nil
            _ = state.take(look, of: order.follower)
            let next = self.next(after: look, of: order, &state)
            return (followed.watch, state.followed[order.follower]?.fact, (latch, next))
        }
        if let watch, let fact { watch.set(fact) }
        return result
    }

    /// Applies a check and publishes its changes. Called on the loop's thread.
    private func ended(_ order: Order, _ look: FileObservation) {
        let (changes, next) = state.withLock { state -> (Change?, Order?) in
            guard let followed = state.followed[order.follower] else { return (nil, nil) }
            let delta = FileChange(from: followed.resolution.end, to: look.resolution.end, received: order.events)
            if state.take(look, of: order.follower) { state.followed[order.follower]?.fact.since = .now }
            if delta.detail != nil {
                state.counts.fired += 1
            } else {
                state.counts.minor += 1
                followed.watch?.suppress()
            }
            let fact = state.followed[order.follower]?.fact
            // Keep the watch even without a change: it must not be released for the last time under the lock.
            let changes = followed.watch.map {
                Change(watch: $0, fact: fact == followed.fact ? nil : fact, detail: delta.detail)
            }
            return (changes, self.next(after: look, of: order, &state))
        }
        if let changes { notify(changes) }
        if let next { start(next) }
    }

    private func next(after look: FileObservation, of order: Order, _ state: inout State) -> Order? {
        if !look.isSettled { state.agenda.keep(order.follower, [.look, .rewatch]) }
        let events = state.agenda.ended(
            order.follower, isBlocked: state.followed[order.follower]?.obstacle != nil, isSettled: look.isSettled,
            at: clock.now)
        state.forgetRecent()
        defer { arm(&state) }
        return events.flatMap { makeOrder(order.follower, $0, &state) }
    }

    private func notify(_ change: Change) {
        let fact = change.fact ?? change.watch.fact
        if change.fact != nil { change.watch.set(fact) }
        onChange(change.watch.path, fact, change.detail)
        if let detail = change.detail { change.watch.fire(detail) }
    }
}

extension FileMonitor.State {
    /// Keeps events for checks in progress.
    mutating func remember(_ events: [InotifyEvent]) {
        recent += events
        guard recent.count > FileMonitor.recentEvents else { return }
        recentStart += UInt64(recent.count)
        recent = []
    }

    /// Removes kept events when no check is in progress.
    mutating func forgetRecent() {
        guard !agenda.isLooking, !recent.isEmpty else { return }
        recentStart += UInt64(recent.count)
        recent = []
    }

    /// The events that a follower may have missed since a mark, now that its watches are in the table.
    func missed(by follower: FileWatchTable.Follower, since mark: UInt64) -> FileEvents {
        guard mark >= recentStart else { return [.look, .rewatch] }
        var received: [FileWatchTable.Follower: FileEvents] = [:]
        for event in recent.dropFirst(Int(mark - recentStart)) { table.receive(event, &received) }
        return received[follower] ?? []
    }

    /// Applies a check. Returns whether the existence of the file changed.
    mutating func take(_ look: FileObservation, of follower: FileWatchTable.Follower) -> Bool {
        guard var followed = followed[follower] else { return false }
        followed.resolution = look.resolution
        if look.hasFollowed { followed.obstacle = look.obstacle }
        let exists = look.resolution.end != nil
        let isOther = followed.fact.exists != exists
        followed.fact.exists = exists
        followed.fact.obstacle = followed.obstacle?.description
        self.followed[follower] = followed
        return isOther
    }
}
