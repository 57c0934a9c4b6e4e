import FreshetEventLoop
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("A daemon that runs once", .hangLimit)
struct OnceTests {
    private func exit(of home: Home, _ names: [String], _ log: LogRecorder) async throws -> DaemonExit {
        var options = home.options
        options.once = true
        options.onceNames = names
        let loop = try DaemonLoop.shared.get()
        let daemon = try Daemon(options: options, loop: loop, log: log.logger)
        return await Task(executorPreference: loop) { await daemon.run() }.value
    }

    @Test("the named pipelines run; with an unknown name, no pipeline runs")
    func names() async throws {
        let home = try Home()
        for name in ["a", "b"] { try home.configure(name, Home.printing(name, to: name)) }
        let log = LogRecorder()
        #expect(try await exit(of: home, ["a", "c"], log) == .usage)
        #expect(log.lines.contains { $0.metadata["error"]?.contains("there is no pipeline 'c'") == true })
        #expect(home.copy("a") == nil)
        #expect(try await exit(of: home, ["a"], log) == .success)
        #expect(home.copy("a") == "a\n" && home.copy("b") == nil)
    }

    @Test("an unreadable configuration is reported itself, not as unknown pipelines")
    func unreadable() async throws {
        let home = try Home()
        // A symbolic link to itself cannot be read as a directory.
        #expect(rmdir(home.path + "/etc/pipelines") == 0)
        #expect(symlink("pipelines", home.path + "/etc/pipelines") == 0)
        let log = LogRecorder()
        #expect(try await exit(of: home, ["a"], log) == .configuration)
        #expect(!log.lines.contains { $0.metadata["error"]?.contains("no pipeline") == true })
        #expect(log.lines.contains { $0.metadata["message-id"] == JournalMessage.configurationError.rawValue })
    }
}
