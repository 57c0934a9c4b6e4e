import FreshetEventLoop
import Glibc
import Synchronization

/// What a look at a path found.
struct FileObservation: Sendable {
    var trail: PathResolution
    /// The way was watched anew, so that ``obstacle`` is known.
    var hasFollowed = false
    /// Why not all changes will be noticed.
    var obstacle: FileWatchLimit?
    /// Nothing changed under the look; else it is to be looked at again.
    var isSettled = true
}

/// Looks at paths. All of it may block, and so happens beside the loop, and without the lock.
extension FileMonitor {
    func look(_ order: Order) -> FileObservation {
        let trail = PathResolution(order.path, calls)
        guard order.events.contains(.rewatch) || trail.steps != order.steps else {
            return FileObservation(trail: trail)
        }
        return follow(order, from: trail)
    }

    /// Watches the way to a path, until it is as it was before it was watched: so nothing slips through in between.
    private func follow(_ order: Order, from first: PathResolution) -> FileObservation {
        let (inotify, failure) = state.withLock { ($0.inotify, $0.failure) }
        guard let inotify else {
            return FileObservation(trail: first, hasFollowed: true, obstacle: failure.map(FileWatchLimit.refused))
        }
        var look = FileObservation(trail: first, hasFollowed: true)
        for _ in 0..<Self.looksPerTurn {
            var refusal: SystemCallError?
            var steps: [(watch: Int32, step: PathResolution.Step)] = []
            for step in look.trail.steps {
                do throws(SystemCallError) {
                    let how: InotifyEvents = [.onlyDirectory, .withoutFollowing, .additionally]
                    steps.append((try calls.add(inotify, step.directory, step.events.union(how)), step))
                } catch {
                    // A directory that is only passed through need not be readable: its renaming is not noticed then.
                    let isHarmless = step.role == .passed && error.errno == EACCES
                    if !isHarmless, refusal == nil { refusal = error }
                }
            }
            register(steps, of: order, inotify)
            let again = PathResolution(order.path, calls)
            look.isSettled = again.steps == look.trail.steps
            look.trail = again
            look.obstacle = (refusal ?? again.obstacle).map(FileWatchLimit.refused)
            if look.isSettled { return look }
        }
        // What was refused may have been so because it has gone: the next look knows.
        look.obstacle = look.trail.obstacle.map(FileWatchLimit.refused)
        return look
    }

    /// Has the watches listened to, and hears what came before anybody listened.
    private func register(
        _ steps: [(watch: Int32, step: PathResolution.Step)], of order: Order, _ inotify: InotifyDescriptor
    ) {
        state.withLock { state in
            guard state.followed[order.follower] != nil else {
                // Nobody follows it any more. Another look that has set one of these, and is not listening yet, hears
                // that it has ended.
                for (watch, _) in steps where !state.table.has(watch) { inotify.remove(watch) }
                return
            }
            for watch in state.table.set(order.follower, to: steps) { inotify.remove(watch) }
            state.agenda.keep(order.follower, state.missed(by: order.follower, since: order.mark))
        }
    }
}
