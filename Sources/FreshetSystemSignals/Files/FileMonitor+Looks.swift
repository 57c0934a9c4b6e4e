import FreshetEventLoop
import Glibc
import Synchronization

/// The result of one check of a path.
struct FileObservation: Sendable {
    var resolution: PathResolution
    /// Whether the directories of the path were watched again, so that ``obstacle`` is known.
    var hasFollowed = false
    /// Why not all changes will be detected.
    var obstacle: FileWatchLimit?
    /// Whether nothing changed during the check; otherwise the path has to be checked again.
    var isSettled = true
}

/// Checks of paths. They may block, so they run outside the loop, and without the lock.
extension FileMonitor {
    func look(_ order: Order) -> FileObservation {
        let resolution = PathResolution(order.path, calls)
        guard order.events.contains(.rewatch) || resolution.steps != order.steps else {
            return FileObservation(resolution: resolution)
        }
        return follow(order, from: resolution)
    }

    /// Watches the directories of a path until they are the same before and after watching, so that no change is missed
    /// in between.
    private func follow(_ order: Order, from first: PathResolution) -> FileObservation {
        let (inotify, failure) = state.withLock { ($0.inotify, $0.failure) }
        guard let inotify else {
            return FileObservation(resolution: first, hasFollowed: true, obstacle: failure.map(FileWatchLimit.refused))
        }
        var look = FileObservation(resolution: first, hasFollowed: true)
        for _ in 0..<Self.looksPerTurn {
            var refusal: SystemCallError?
            var steps: [(watch: Int32, step: PathResolution.Step)] = []
            for step in look.resolution.steps {
                do throws(SystemCallError) {
                    let how: InotifyEvents = [.onlyDirectory, .withoutFollowing, .additionally]
                    steps.append((try calls.add(inotify, step.directory, step.events.union(how)), step))
                } catch {
                    // A directory that is only passed through need not be readable; its renaming is then not detected.
                    let isHarmless = step.role == .passed && error.errno == EACCES
                    if !isHarmless, refusal == nil { refusal = error }
                }
            }
            register(steps, of: order, inotify)
            let again = PathResolution(order.path, calls)
            look.isSettled = again.steps == look.resolution.steps
            look.resolution = again
            look.obstacle = (refusal ?? again.obstacle).map(FileWatchLimit.refused)
            if look.isSettled { return look }
        }
        // A call may have failed because the directory is gone: the next check finds out.
        look.obstacle = look.resolution.obstacle.map(FileWatchLimit.refused)
        return look
    }

    /// Registers the watches, and adds the events that arrived before the registration.
    private func register(
        _ steps: [(watch: Int32, step: PathResolution.Step)], of order: Order, _ inotify: InotifyDescriptor
    ) {
        state.withLock { state in
            guard state.followed[order.follower] != nil else {
                // The path is no longer followed. If another check has set one of these watches and not registered it
                // yet, that check gets the event that the watch has ended.
                for (watch, _) in steps where !state.table.has(watch) { inotify.remove(watch) }
                return
            }
            for watch in state.table.set(order.follower, to: steps) { inotify.remove(watch) }
            state.agenda.keep(order.follower, state.missed(by: order.follower, since: order.mark))
        }
    }
}
