public import FreshetEventLoop
import FreshetSignals
import Synchronization

/// Follows any number of paths by one inotify(7) descriptor, and fires a signal for each when what is there changes.
///
/// ```swift
/// let monitor = FileMonitor(loop)
/// let watch = monitor.watch("/etc/hosts")
/// for await _ in watch.signal { … }
/// ```
///
/// **What fires.** The file was closed after writing, replaced by a rename, created or removed. A path need not exist,
/// nor its directories: as these come, they are watched. Symbolic links are followed wherever they stand in the path,
/// and both they and what they lead to are heeded. Of a directory, its entries (not what is below them) count. A
/// change of rights or times fires nothing, but whoever opens a file for writing and closes it has written, as
/// touch(1) does. What is written through a memory map says nothing, and neither does what another machine does to a
/// network file system: the kernel does not tell.
///
/// **Storms.** All that happened to a path until a look at it ends is one firing, and a turn of the loop reads a bounded
/// number of events. When the kernel's queue overflows, every path is looked at, and those fire that are not as they
/// were.
///
/// **What is missing** is no error: ``FileFact/obstacle`` says so, other paths go on, and it is tried again: after a
/// second, and then after pauses that double up to five minutes.
///
/// **File systems that do not answer.** A path that leads over a network may hold up a system call for ever. So paths are
/// looked at by threads beside the loop, one for each look that hangs, at most ``looksAtOnce``; they end when they are
/// idle. Only ``watch(_:)`` waits for the first look, and not for long.
///
/// **Threading.** All methods may be called from any thread.
public final class FileMonitor: Sendable {
    /// What the occurrences of a path's signal are named after.
    public static func signalName(of path: String) -> String { "file \(path)" }

    /// How often what happened.
    public struct Counts: Hashable, Sendable {
        /// Firings, of all paths.
        public var fired: UInt64 = 0
        /// Looks after which nothing fired.
        public var minor: UInt64 = 0
        /// How often events were lost, and everything was looked at.
        public var overflows: UInt64 = 0
    }

    /// The most paths that are looked at at once. When that many hang, the others wait, and say so.
    public static let looksAtOnce = 8
    /// How long ``watch(_:)`` waits for the first look: a disk that is busy answers within this.
    static let patience: Duration = .seconds(1)
    /// The same while another look hangs: who follows many dead paths must not wait for each.
    static let shortPatience: Duration = .milliseconds(50)
    /// The most buffers of events (of 16 KiB) that are read before the loop turns to others.
    static let readsPerTurn = 16
    /// How often in a row a way is looked at that changes under the look; after that, in another look.
    static let looksPerTurn = 8
    /// The most events that are kept for looks under way. Who misses some looks once more.
    static let recentEvents = 4_096

    struct Followed {
        weak var watch: FileWatch?
        let path: String
        var trail = PathResolution()
        var fact = FileFact(exists: false)
        /// What the last look that ended found in its way.
        var obstacle: FileWatchLimit?
        /// Somebody waits for the first look.
        var firstLook: Latch?
    }

    struct State {
        /// Nil: nothing has been watched yet, or inotify is missing.
        var inotify: InotifyDescriptor?
        var descriptorWatch: DescriptorWatch?
        var failure: SystemCallError?
        var table = FileWatchTable()
        var agenda = RetrySchedule()
        var followed: [FileWatchTable.Follower: Followed] = [:]
        var followers: [String: FileWatchTable.Follower] = [:]
        var next: FileWatchTable.Follower = 0
        var counts = Counts()
        /// What was read while looks were under way: a look may have set a watch that the table does not have yet.
        var recent: [InotifyEvent] = []
        /// How many were read before those.
        var recentStart: UInt64 = 0
        var alarm: (any Alarm)?
        /// What it is armed for.
        var armed: ContinuousClock.Instant?
    }

    /// A look that is to be begun.
    struct Order {
        let follower: FileWatchTable.Follower
        let path: String
        let events: FileEvents
        let steps: [PathResolution.Step]
        /// The first event that it may have missed.
        let mark: UInt64
    }

    /// What is to be told after the lock is released.
    private struct News {
        var watch: FileWatch
        var fact: FileFact?
        var detail: String?
    }

    private let loop: EventLoop
    private let clock: any AlarmClock
    let calls: FileCalls
    private let patience: Duration
    private let workers = WorkerPool(threads: looksAtOnce)
    private let onNews: @Sendable (_ path: String, FileFact, _ firing: String?) -> Void
    let state = Mutex(State())

    /// Makes a monitor. It costs nothing until a path is watched.
    ///
    /// - Parameters:
    ///   - loop: where the kernel is listened to, and what is told is told.
    ///   - onNews: called on the loop's thread when a path's fact has changed or before its signal fires, with the
    ///     firing's detail then. It must not block.
    public convenience init(
        _ loop: EventLoop,
        onNews: @escaping @Sendable (_ path: String, FileFact, _ firing: String?) -> Void = { _, _, _ in }
    ) {
        self.init(loop, clock: loop, calls: .kernel, onNews: onNews)
    }

    /// - Parameters:
    ///   - clock: when obstacles are looked at again; tests move it.
    ///   - calls: asks the kernel; tests refuse and hang.
    ///   - patience: how long the first look is waited for.
    init(
        _ loop: EventLoop, clock: any AlarmClock, calls: FileCalls, patience: Duration = FileMonitor.patience,
        onNews: @escaping @Sendable (_ path: String, FileFact, _ firing: String?) -> Void = { _, _, _ in }
    ) {
        self.loop = loop
        self.clock = clock
        self.calls = calls
        self.patience = patience
        self.onNews = onNews
    }

    /// How often what happened.
    public var counts: Counts { state.withLock { $0.counts } }

    /// How many directories are watched, for tests.
    var watchCount: Int { state.withLock { $0.table.count } }

    // MARK: Paths

    /// Follows an absolute path for as long as the watch is kept. Who asks for a path that is followed gets the same
    /// watch. What changes from now on fires.
    ///
    /// It waits until the path was looked at, for a second at most. If that was not enough the fact says so, and what is
    /// found later counts as created.
    public func watch(_ path: String) -> FileWatch {
        let (watch, follower, latch, order) = state.withLock { state in
            if let follower = state.followers[path], let followed = state.followed[follower], let watch = followed.watch
            {
                return (watch, follower, followed.firstLook, Order?.none)
            }
            open(&state)
            state.next += 1
            let follower = state.next
            let watch = FileWatch(path, FileFact(exists: false)) { [weak self] in self?.unwatch(path, follower) }
            let latch = Latch()
            state.followed[follower] = Followed(watch: watch, path: path, firstLook: latch)
            state.followers[path] = follower
            return (watch, follower, latch, begin(follower, [.look, .rewatch], &state))
        }
        if let order { start(order) }
        if let latch { wait(for: latch, of: follower, watch) }
        return watch
    }

    private func wait(for latch: Latch, of follower: FileWatchTable.Follower, _ watch: FileWatch) {
        let patience = state.withLock { $0.agenda.isHeldUp } ? min(Self.shortPatience, patience) : patience
        guard !latch.wait(for: patience) else { return }
        let fact = state.withLock { state -> FileFact? in
            // It may have come to its end just now.
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
            if state.followers[path] == follower { state.followers[path] = nil }
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

    // MARK: Turns

    /// Reads what there is, and has those paths looked at that it is about. On the loop's thread.
    private func turn() {
        let orders = state.withLock { state in
            var heard: [FileWatchTable.Follower: FileEvents] = [:]
            let table = state.table
            let isLooking = state.agenda.isLooking
            var recent: [InotifyEvent] = []
            var overflows: UInt64 = 0
            state.inotify?.read(atMost: Self.readsPerTurn) { event in
                if event.events.contains(.overflowed) { overflows += 1 }
                if isLooking { recent.append(event) }
                table.hear(event, &heard)
            }
            state.counts.overflows += overflows
            state.remember(recent)
            // In the order in which they were asked for.
            return heard.sorted { $0.key < $1.key }.compactMap { begin($0.key, $0.value, &state) }
        }
        for order in orders { start(order) }
    }

    /// Says which looks do not end, and looks again at what had an obstacle. On the clock's thread.
    private func expire() {
        let (news, orders) = state.withLock { state -> ([News], [Order]) in
            state.armed = nil
            let (slow, again) = state.agenda.due(at: clock.now)
            var news: [News] = []
            for follower in slow {
                guard let watch = state.followed[follower]?.watch else { continue }
                state.followed[follower]?.fact.obstacle = FileWatchLimit.noAnswer.description
                news.append(News(watch: watch, fact: state.followed[follower]?.fact))
            }
            if !again.isEmpty { open(&state) }
            let orders = again.compactMap { begin($0, [.look, .rewatch], &state) }
            arm(&state)
            return (news, orders)
        }
        for item in news { tell(item) }
        for order in orders { start(order) }
    }

    private func arm(_ state: inout State) {
        // The first looks are waited for by who asked.
        let deadline = state.agenda.deadline
        guard deadline != state.armed else { return }
        state.armed = deadline
        if let deadline { state.alarm?.arm(at: deadline) } else { state.alarm?.disarm() }
    }

    /// Notes a look, unless there is one under way already.
    private func begin(_ follower: FileWatchTable.Follower, _ events: FileEvents, _ state: inout State) -> Order? {
        guard state.followed[follower] != nil, state.agenda.hear(follower, events, at: clock.now) else { return nil }
        return makeOrder(follower, events, &state)
    }

    private func makeOrder(_ follower: FileWatchTable.Follower, _ events: FileEvents, _ state: inout State) -> Order? {
        guard let followed = state.followed[follower] else { return nil }
        if followed.firstLook == nil { arm(&state) }
        return Order(
            follower: follower, path: followed.path, events: events, steps: followed.trail.steps,
            mark: state.recentStart + UInt64(state.recent.count))
    }

    private func start(_ order: Order) {
        workers.perform("a look at a file") { [weak self] in
            guard let self else { return }
            let look = self.look(order)
            // Who waits for it is on any thread, maybe the loop's.
            guard !self.tookFirst(look, of: order) else { return }
            self.loop.perform(named: "files") { [weak self] in self?.ended(order, look) }
        }
    }

    /// Takes what the first look found, if somebody waits for it: that is how it is, and no news.
    private func tookFirst(_ look: FileObservation, of order: Order) -> Bool {
        guard let (latch, next) = setFirst(look, of: order) else { return false }
        // Nothing of the watch is held here any more: it ends when who waits lets go of it.
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

    /// Takes what a look found, and tells. On the loop's thread.
    private func ended(_ order: Order, _ look: FileObservation) {
        let (news, next) = state.withLock { state -> (News?, Order?) in
            guard let followed = state.followed[order.follower] else { return (nil, nil) }
            let delta = FileChange(from: followed.trail.end, to: look.trail.end, heard: order.events)
            if state.take(look, of: order.follower) { state.followed[order.follower]?.fact.since = .now }
            if delta.detail != nil {
                state.counts.fired += 1
            } else {
                state.counts.minor += 1
                followed.watch?.passOver()
            }
            let fact = state.followed[order.follower]?.fact
            // A watch that is told nothing is kept as well: its last release must not be under the lock.
            let news = followed.watch.map {
                News(watch: $0, fact: fact == followed.fact ? nil : fact, detail: delta.detail)
            }
            return (news, self.next(after: look, of: order, &state))
        }
        if let news { tell(news) }
        if let next { start(next) }
    }

    private func next(after look: FileObservation, of order: Order, _ state: inout State) -> Order? {
        if !look.isSettled { state.agenda.keep(order.follower, [.look, .rewatch]) }
        let events = state.agenda.ended(
            order.follower, isBlocked: state.followed[order.follower]?.obstacle != nil, at: clock.now)
        state.forgetRecent()
        defer { arm(&state) }
        return events.flatMap { makeOrder(order.follower, $0, &state) }
    }

    private func tell(_ news: News) {
        let fact = news.fact ?? news.watch.fact
        if news.fact != nil { news.watch.set(fact) }
        onNews(news.watch.path, fact, news.detail)
        if let detail = news.detail { news.watch.fire(detail) }
    }
}

extension FileMonitor.State {
    /// Keeps events for the looks under way.
    mutating func remember(_ events: [InotifyEvent]) {
        recent += events
        guard recent.count > FileMonitor.recentEvents else { return }
        recentStart += UInt64(recent.count)
        recent = []
    }

    /// Without a look under way nobody needs them.
    mutating func forgetRecent() {
        guard !agenda.isLooking, !recent.isEmpty else { return }
        recentStart += UInt64(recent.count)
        recent = []
    }

    /// What a follower may have missed since a mark, now that the table has its watches.
    func missed(by follower: FileWatchTable.Follower, since mark: UInt64) -> FileEvents {
        guard mark >= recentStart else { return [.look, .rewatch] }
        var heard: [FileWatchTable.Follower: FileEvents] = [:]
        for event in recent.dropFirst(Int(mark - recentStart)) { table.hear(event, &heard) }
        return heard[follower] ?? []
    }

    /// Notes what a look found. Returns whether there is something now where was nothing, or the other way round.
    mutating func take(_ look: FileObservation, of follower: FileWatchTable.Follower) -> Bool {
        guard var followed = followed[follower] else { return false }
        followed.trail = look.trail
        if look.hasFollowed { followed.obstacle = look.obstacle }
        let exists = look.trail.end != nil
        let isOther = followed.fact.exists != exists
        followed.fact.exists = exists
        followed.fact.obstacle = followed.obstacle?.description
        self.followed[follower] = followed
        return isOther
    }
}
