import FreshetEventLoop
import FreshetSystemd
import Synchronization

/// Sends the status line of the daemon to the service manager when a value in it may have changed.
///
/// A burst of changes causes one line and one task.
@DaemonActor
final class StatusReporter {
    /// The delay between a change and the new line.
    nonisolated static let delay: Duration = .milliseconds(250)

    private struct Plan {
        var timer: LoopTimer?
        /// The timer is armed, or its line is about to be sent.
        var isDue = false
    }

    private let notifier: Notifier
    private let tasks: DaemonTasks
    private nonisolated let plan = Mutex(Plan())
    private var compose: (() async -> String)?
    private var last = ""

    nonisolated init(_ context: DaemonContext) {
        notifier = context.notifier
        tasks = context.tasks
        let timer = LoopTimer(context.loop, named: "status line") { [weak self, tasks = context.tasks] in
            tasks.add { [weak self] in await self?.send() }
        }
        plan.withLock { $0.timer = timer }
    }

    /// Starts to send lines.
    ///
    /// - Parameter compose: makes the line with the current values.
    func begin(_ compose: @escaping @DaemonActor () async -> String) {
        self.compose = compose
    }

    /// Releases the maker of lines, because no line follows.
    func finish() { compose = nil }

    /// Plans a new line, because a value in it may have changed. Safe to call from any thread.
    nonisolated func mayHaveChanged() {
        guard notifier.isConnected else { return }
        plan.withLock { plan in
            guard !plan.isDue else { return }
            plan.isDue = true
            plan.timer?.arm(at: .now + Self.delay)
        }
    }

    /// Sends the line, unless it is the same as the last one.
    func send() async {
        plan.withLock { $0.isDue = false }
        guard let line = await compose?(), line != last, !tasks.isEnding else { return }
        last = line
        notifier.status(line)
    }

    /// Reports that the daemon is ready, at the start and after a reload.
    func ready() async {
        notifier.ready(status: await compose?() ?? "")
    }
}
