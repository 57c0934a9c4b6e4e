import FreshetEventLoop
import FreshetSystemd
import Synchronization

/// Signs of life for the service manager.
///
/// A timer of the loop asks the supervisor, and only the supervisor answers the manager: if either hangs, the manager
/// hears nothing. Workers are not asked: a slow disk is no hang, and a restart would not mend it. The status line has it.
extension Supervisor {
    /// Begins to say `WATCHDOG=1`, if the service manager wants to hear it.
    func beginWatchdog() {
        guard notifier.isConnected, let watchdog = Watchdog(environment: options.environment) else { return }
        heartbeat = Heartbeat(loop, every: watchdog.interval) { [weak self] in self?.watchdogIsDue() }
    }

    nonisolated private func watchdogIsDue() {
        // At the end the supervisor takes no more jobs; how long that may take is for `TimeoutStopSec=` to say.
        if isEnding { notifier.watchdog() } else { adopt { [weak self] in await self?.sayAlive() } }
    }

    private func sayAlive() async {
        notifier.watchdog()
        await tellStatus()
    }
}

/// Calls a handler on a loop's thread, at an interval, until it is released.
final class Heartbeat: Sendable {
    private let timer = Mutex<LoopTimer?>(nil)

    /// - Parameter beat: called first when the interval has passed once.
    init(_ loop: EventLoop, every interval: Duration, _ beat: @escaping @Sendable () -> Void) {
        let timer = LoopTimer(loop) { [weak self] in
            // Armed first, so that the next beat comes whatever becomes of this one.
            self?.arm(interval)
            beat()
        }
        self.timer.withLock { $0 = timer }
        arm(interval)
    }

    private func arm(_ interval: Duration) {
        timer.withLock { $0 }?.arm(at: .now + interval)
    }
}
