public import FreshetEventLoop
import FreshetSignals
import Glibc
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
/// **Storms.** All that happened to a path until the loop's turn is one firing, and a turn reads a bounded number of
/// events. When the kernel's queue overflows, every path is looked at, and those fire that are not as they were.
///
/// **What is missing** is no error: ``FileFact/obstacle`` says so, and other paths go on.
///
/// **Threading.** All methods may be called from any thread. ``watch(_:)`` and the loop look at the file system: the
/// paths are to be on local ones.
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

    /// The most buffers of events (of 16 KiB) that are read before the loop turns to others.
    static let readsPerTurn = 16
    /// How often in a row a way is looked at that changes under the look; after that, in the loop's next turn.
    static let looksPerTurn = 8

    private struct Followed {
        weak var watch: FileWatch?
        let path: String
        var trail: FileTrail
        var fact: FileFact
    }

    private struct State {
        /// Nil: nothing has been watched yet, or inotify is missing.
        var inotify: InotifyDescriptor?
        var descriptorWatch: DescriptorWatch?
        var failure: SystemCallError?
        var table = FileWatchTable()
        var followed: [FileWatchTable.Follower: Followed] = [:]
        var followers: [String: FileWatchTable.Follower] = [:]
        var next: FileWatchTable.Follower = 0
        var counts = Counts()
    }

    /// What is to be told after the lock is released.
    private struct News {
        var watch: FileWatch
        var fact: FileFact?
        var detail: String?
    }

    private let loop: EventLoop
    private let onNews: @Sendable (_ path: String, FileFact, _ firing: String?) -> Void
    private let state = Mutex(State())

    /// Makes a monitor. It costs nothing until a path is watched.
    ///
    /// - Parameter onNews: called on the loop's thread when a path's fact has changed or before its signal fires, with
    ///   the firing's detail then. It must not block.
    public init(
        _ loop: EventLoop,
        onNews: @escaping @Sendable (_ path: String, FileFact, _ firing: String?) -> Void = { _, _, _ in }
    ) {
        self.loop = loop
        self.onNews = onNews
    }

    /// How often what happened.
    public var counts: Counts { state.withLock { $0.counts } }

    /// How many directories are watched, for tests.
    var watchCount: Int { state.withLock { $0.table.count } }

    // MARK: Paths

    /// Follows an absolute path for as long as the watch is kept. Who asks for a path that is followed gets the same
    /// watch. What changes from now on fires.
    public func watch(_ path: String) -> FileWatch {
        state.withLock { state in
            if let follower = state.followers[path], let watch = state.followed[follower]?.watch { return watch }
            open(&state)
            state.next += 1
            let follower = state.next
            let (trail, obstacle, isSettled) = follow(path, as: follower, &state, from: FileTrail(path))
            if !isSettled { loop.perform { [weak self] in self?.turn([follower: [.look, .rewatch]]) } }
            let fact = FileFact(exists: trail.end != nil, obstacle: obstacle)
            let watch = FileWatch(path, fact) { [weak self] in self?.unwatch(path, follower) }
            state.followed[follower] = Followed(watch: watch, path: path, trail: trail, fact: fact)
            state.followers[path] = follower
            return watch
        }
    }

    private func unwatch(_ path: String, _ follower: FileWatchTable.Follower) {
        let waiting = state.withLock { state -> [FileWatchTable.Follower: FileEvents] in
            guard state.followed.removeValue(forKey: follower) != nil else { return [:] }
            if state.followers[path] == follower { state.followers[path] = nil }
            for watch in state.table.set(follower, to: []) { state.inotify?.remove(watch) }
            // There may be room now for what was refused.
            return state.followed.filter { $0.value.fact.obstacle != nil }.mapValues { _ in [.look, .rewatch] }
        }
        if !waiting.isEmpty { loop.perform { [weak self] in self?.turn(waiting) } }
    }

    private func open(_ state: inout State) {
        guard state.inotify == nil else { return }
        do throws(SystemCallError) {
            let inotify = try InotifyDescriptor()
            state.descriptorWatch = try loop.watch(inotify.rawValue, for: .read) { [weak self] _ in self?.turn() }
            state.inotify = inotify
            state.failure = nil
        } catch {
            state.failure = error
        }
    }

    // MARK: Following

    /// Reads what there is, looks, and tells. On the loop's thread.
    private func turn(_ known: [FileWatchTable.Follower: FileEvents] = [:]) {
        let (news, unsettled) = state.withLock { state in
            var heard = known
            let table = state.table
            var overflows: UInt64 = 0
            state.inotify?.read(atMost: Self.readsPerTurn) { event in
                if event.events.contains(.overflowed) { overflows += 1 }
                table.hear(event, &heard)
            }
            state.counts.overflows += overflows
            var news: [News] = []
            var unsettled: [FileWatchTable.Follower: FileEvents] = [:]
            // In the order in which they were asked for.
            for (follower, events) in heard.sorted(by: { $0.key < $1.key }) {
                look(at: follower, events, &state, &news, &unsettled)
            }
            return (news, unsettled)
        }
        for item in news {
            let fact = item.fact ?? item.watch.fact
            if item.fact != nil { item.watch.set(fact) }
            onNews(item.watch.path, fact, item.detail)
            if let detail = item.detail { item.watch.fire(detail) }
        }
        if !unsettled.isEmpty { loop.perform { [weak self] in self?.turn(unsettled) } }
    }

    private func look(
        at follower: FileWatchTable.Follower, _ events: FileEvents, _ state: inout State, _ news: inout [News],
        _ unsettled: inout [FileWatchTable.Follower: FileEvents]
    ) {
        guard let followed = state.followed[follower], let watch = followed.watch else { return }
        var trail = FileTrail(followed.path)
        var fact = followed.fact
        if events.contains(.rewatch) || trail.steps != followed.trail.steps {
            let isSettled: Bool
            (trail, fact.obstacle, isSettled) = follow(followed.path, as: follower, &state, from: trail)
            if !isSettled { unsettled[follower] = [.look, .rewatch] }
        }
        let delta = FileDelta(from: followed.trail.end, to: trail.end, heard: events)
        if fact.exists != (trail.end != nil) {
            fact.exists = trail.end != nil
            fact.since = .now
        }
        state.followed[follower]?.trail = trail
        state.followed[follower]?.fact = fact
        if delta.detail != nil {
            state.counts.fired += 1
        } else {
            state.counts.minor += 1
            watch.passOver()
        }
        // A watch that is told nothing is kept as well: its last release must not be under the lock.
        news.append(News(watch: watch, fact: fact == followed.fact ? nil : fact, detail: delta.detail))
    }

    /// Watches the way to a path, until it is as it was before it was watched: so nothing slips through in between.
    private func follow(
        _ path: String, as follower: FileWatchTable.Follower, _ state: inout State, from first: FileTrail
    ) -> (FileTrail, obstacle: String?, isSettled: Bool) {
        guard let inotify = state.inotify else {
            return (first, state.failure.map(Self.explain), true)
        }
        var trail = first
        for _ in 0..<Self.looksPerTurn {
            var refusal: SystemCallError?
            var steps: [(watch: Int32, step: FileTrail.Step)] = []
            for step in trail.steps {
                do throws(SystemCallError) {
                    let how: InotifyEvents = [.onlyDirectory, .withoutFollowing, .additionally]
                    steps.append((try inotify.add(step.directory, for: step.events.union(how)), step))
                } catch {
                    // A directory that is only passed through need not be readable: its renaming is not noticed then.
                    let isHarmless = step.role == .passed && error.errno == EACCES
                    if !isHarmless, refusal == nil { refusal = error }
                }
            }
            for watch in state.table.set(follower, to: steps) { inotify.remove(watch) }
            let again = FileTrail(path)
            let isSame = again.steps == trail.steps
            trail = again
            if isSame { return (trail, (refusal ?? trail.obstacle).map(Self.explain), true) }
        }
        return (trail, trail.obstacle.map(Self.explain), false)
    }

    // MARK: Words

    private static func explain(_ error: SystemCallError) -> String {
        let remedy =
            switch (error.call, error.errno) {
            case ("inotify_init1", EMFILE):
                "raise fs.inotify.max_user_instances by sysctl(8), or the limit on open files"
            case ("inotify_add_watch", ENOSPC): "raise fs.inotify.max_user_watches by sysctl(8)"
            case ("inotify_add_watch", EACCES): "the directory has to be readable for this user"
            case ("lstat", EACCES): "the directories on the way have to be searchable for this user"
            case ("open", ELOOP): "its symbolic links lead in a circle"
            default: "see inotify(7)"
            }
        return "its changes are not noticed (\(error)): \(remedy)"
    }
}
