import FreshetEventLoop
import Synchronization
import TestSupport
import Testing

@testable import FreshetDaemon
@testable import FreshetSystemd

@Suite("Messages to the service manager", .hangLimit)
struct StatusReporterTests {
    /// Runs the tasks of a daemon whose service manager is scripted.
    private func withContext(
        _ environment: [String: String] = [:], _ body: (DaemonContext, ScriptedManager) async throws -> Void
    ) async throws {
        let manager = try ScriptedManager()
        var options = try Home().options
        options.environment = environment.merging(["NOTIFY_SOCKET": manager.address]) { $1 }
        try await DaemonLoop.run { [options] loop in
            let context = try DaemonContext(
                options: options, loop: loop, log: LogRecorder().logger, redactor: Redactor())
            let life = Task(executorPreference: loop) { await context.tasks.run() }
            try await body(context, manager)
            context.tasks.end()
            await life.value
        }
        // The watchdog may have sent messages before.
        #expect(await eventually { manager.receive() == "STOPPING=1\nSTATUS=stopping" })
    }

    @Test("a burst of changes makes one line; a line that has not changed is not sent again")
    func burst() async throws {
        try await withContext { context, manager in
            let line = Mutex("one")
            let made = Mutex(0)
            let status = StatusReporter(context)
            await status.begin {
                made.withLock { $0 += 1 }
                return line.withLock { $0 }
            }
            for _ in 1...1_000 { status.mayHaveChanged() }
            #expect(await eventually { manager.receive() == "STATUS=one" })
            #expect(made.withLock { $0 } == 1)
            status.mayHaveChanged()
            #expect(await eventually { made.withLock { $0 } == 2 })
            line.withLock { $0 = "two" }
            status.mayHaveChanged()
            #expect(await eventually { manager.receive() == "STATUS=two" })
        }
    }

    @Test("changes before the start do not stop later lines; without a service manager, no line is made")
    func begin() async throws {
        try await withContext { context, manager in
            let status = StatusReporter(context)
            status.mayHaveChanged()
            await status.send()
            await status.begin { "ready" }
            status.mayHaveChanged()
            #expect(await eventually { manager.receive() == "STATUS=ready" })
            await status.ready()
            #expect(manager.receive() == "READY=1\nSTATUS=ready")
        }
        let loop = try DaemonLoop.shared.get()
        let alone = try DaemonContext(
            options: try Home().options, loop: loop, log: LogRecorder().logger, redactor: Redactor())
        #expect(WatchdogReporter(alone, StatusReporter(alone)) == nil)
    }

    @Test("the watchdog gets messages as long as the daemon's actor answers, and the status line with each")
    func watchdog() async throws {
        try await withContext(["WATCHDOG_USEC": "20000"]) { context, manager in
            let status = StatusReporter(context)
            await status.begin { "alive" }
            let watchdog = WatchdogReporter(context, status)
            #expect(watchdog != nil)
            #expect(await eventually { manager.receive() == "WATCHDOG=1" })
            #expect(await eventually { manager.receive() == "STATUS=alive" })
            #expect(await eventually { manager.receive() == "WATCHDOG=1" })
            withExtendedLifetime(watchdog) {}
        }
    }
}
