import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import Synchronization

/// Runs hooks and checks, which are programs that the configuration names, with the rights of the service. A program
/// runs by its absolute path without a shell, in `/` and in its own process group, with a clean environment and without
/// descriptors of the daemon. It runs only if no other user could have replaced it (``PathTrust``).
struct TrustedPrograms: Sendable {
    let commands: CommandRunner
    let workers: WorkerPool
    let trust: PathTrust

    /// The output of a program as it goes to the journal.
    enum OutputHandling: Hashable, Sendable {
        case line(String)
        /// The number of lines beyond the limit, which are not logged.
        case leftOut(Int)
    }

    /// Runs a program until it ends; throws if its exit status is not 0.
    ///
    /// - Parameters:
    ///   - command: an absolute path and arguments.
    ///   - variables: additional environment variables.
    ///   - log: called on the loop's thread with the output of the program.
    func perform(
        _ command: [String], _ variables: [String: String], timeout: Duration,
        _ log: @escaping @Sendable (OutputHandling) -> Void
    ) async throws(FetchError) {
        try await withOutput(of: command, log) { (output) async throws(FetchError) in
            try await commands.perform(
                command, variables: variables, directory: "/", timeout: timeout, output: output)
        }
    }

    /// Runs a program until it ends, and returns its exit status.
    func exitStatus(
        of command: [String], _ variables: [String: String], timeout: Duration,
        _ log: @escaping @Sendable (OutputHandling) -> Void
    ) async throws(FetchError) -> Int32 {
        try await withOutput(of: command, log) { (output) async throws(FetchError) in
            try await commands.exitStatus(
                command, variables: variables, directory: "/", timeout: timeout, output: output)
        }
    }

    private func withOutput<Result: Sendable>(
        of command: [String], _ log: @escaping @Sendable (OutputHandling) -> Void,
        _ run: (@escaping @Sendable (UnsafeRawBufferPointer) -> Void) async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        try await check(command.first ?? "")
        let output = Mutex(ProgramOutput())
        defer {
            let (last, leftOut) = output.withLock { ($0.finish(), $0.leftOut) }
            if let last { log(.line(last)) }
            if leftOut > 0 { log(.leftOut(leftOut)) }
        }
        return try await run { bytes in
            for line in output.withLock({ $0.take(bytes) }) { log(.line(line)) }
        }
    }

    private func check(_ path: String) async throws(FetchError) {
        try await workers.run("program") { () throws(FetchError) in
            do throws(PathTrust.ValidationError) {
                try trust.check(path)
            } catch {
                let remedy = error.remedy.map { "; \($0)" } ?? ""
                throw .failed(RunFailure(.local, "\(path) is not run: \(error.message)\(remedy)"))
            }
        }
    }
}
