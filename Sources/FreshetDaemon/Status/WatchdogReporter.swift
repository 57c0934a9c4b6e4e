import FreshetEventLoop
import FreshetSystemd
import Synchronization

/// Sends `WATCHDOG=1` to the service manager.
///
/// A timer of the loop starts a job of the daemon's actor, and only that job sends the message. If the loop or the actor
/// hangs, the service manager gets no message. Worker threads are not involved: a slow disk is not a hang, and a restart
/// would not repair it. The status line shows a slow disk.
final class WatchdogReporter: Sendable {
    private let heartbeat: Heartbeat

    /// Starts to send messages; nil: the service manager has no watchdog for the daemon.
    init?(_ context: DaemonContext, _ status: StatusReporter) {
        let (notifier, tasks) = (context.notifier, context.tasks)
        guard notifier.isConnected, let watchdog = Watchdog(environment: context.options.environment) else {
            return nil
        }
        heartbeat = Heartbeat(context.loop, every: watchdog.interval) {
            // While the daemon stops, no job starts; then `TimeoutStopSec=` limits the time.
            guard !tasks.isEnding else {
                notifier.watchdog()
                return
            }
            tasks.add { @DaemonActor in
                notifier.watchdog()
                await status.send()
            }
        }
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
