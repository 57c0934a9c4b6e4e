import FreshetEventLoop
import FreshetSystemd
import Synchronization

/// Watchdog messages to the service manager.
///
/// A timer of the loop starts a job of the supervisor, and only that job sends `WATCHDOG=1`. If the loop or the
/// supervisor hangs, the service manager gets no message. Worker threads are not involved: a slow disk is not a hang,
/// and a restart would not repair it. The status line shows a slow disk.
extension Supervisor {
    /// Starts to send `WATCHDOG=1`, if the service manager requests it.
    func beginWatchdog() {
        guard notifier.isConnected, let watchdog = Watchdog(environment: options.environment) else { return }
        heartbeat = Heartbeat(loop, every: watchdog.interval) { [weak self] in self?.watchdogIsDue() }
    }

    nonisolated private func watchdogIsDue() {
        // While the daemon stops, the supervisor takes no more jobs; then `TimeoutStopSec=` limits the time.
        if isEnding { notifier.watchdog() } else { adopt { [weak self] in await self?.pingWatchdog() } }
    }

    private func pingWatchdog() async {
        notifier.watchdog()
        await sendStatus()
    }
}

/// Calls a closure on the loop's thread at a fixed interval, until the heartbeat is released.
final class Heartbeat: Sendable {
    private let timer = Mutex<LoopTimer?>(nil)

    /// - Parameter beat: called for the first time after one interval.
    init(_ loop: EventLoop, every interval: Duration, _ beat: @escaping @Sendable () -> Void) {
        let timer = LoopTimer(loop) { [weak self] in
            // Armed first, so that a problem in this call does not prevent the next one.
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
