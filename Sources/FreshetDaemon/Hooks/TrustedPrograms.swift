import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import Synchronization

/// Runs programs that the configuration names, hooks and checks, with the service's own rights: by an absolute path without
/// a shell, in `/` and in a process group of their own, with a clean environment and no descriptors of the daemon's; only
/// if nobody could have put something else into their place (``PathTrust``).
struct TrustedPrograms: Sendable {
    let commands: CommandRunner
    let workers: WorkerPool
    let trust: PathTrust

    /// What a program writes, as it goes to the journal.
    enum OutputHandling: Hashable, Sendable {
        case line(String)
        /// So many lines more were written than are taken.
        case leftOut(Int)
    }

    /// Runs a program to its end for what it does.
    ///
    /// - Parameters:
    ///   - command: an absolute path and arguments.
    ///   - variables: what its environment has besides.
    ///   - say: called on the loop's thread with what it writes.
    func perform(
        _ command: [String], _ variables: [String: String], timeout: Duration,
        _ say: @escaping @Sendable (OutputHandling) -> Void
    ) async throws(FetchError) {
        try await listening(command, say) { (output) async throws(FetchError) in
            try await commands.perform(
                command, variables: variables, directory: "/", timeout: timeout, output: output)
        }
    }

    /// Runs a program to its end for its exit status.
    func ask(
        _ command: [String], _ variables: [String: String], timeout: Duration,
        _ say: @escaping @Sendable (OutputHandling) -> Void
    ) async throws(FetchError) -> Int32 {
        try await listening(command, say) { (output) async throws(FetchError) in
            try await commands.ask(command, variables: variables, directory: "/", timeout: timeout, output: output)
        }
    }

    private func listening<Result: Sendable>(
        _ command: [String], _ say: @escaping @Sendable (OutputHandling) -> Void,
        _ run: (@escaping @Sendable (UnsafeRawBufferPointer) -> Void) async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        try await check(command.first ?? "")
        let output = Mutex(ProgramOutput())
        defer {
            let (last, leftOut) = output.withLock { ($0.finish(), $0.leftOut) }
            if let last { say(.line(last)) }
            if leftOut > 0 { say(.leftOut(leftOut)) }
        }
        return try await run { bytes in
            for line in output.withLock({ $0.take(bytes) }) { say(.line(line)) }
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
