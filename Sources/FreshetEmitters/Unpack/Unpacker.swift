package import FreshetEventLoop
package import FreshetHelper
package import FreshetPipelines
import FreshetUnpack
import Glibc
import Synchronization

/// Unpacks answers for the engine, each in its own helper process (``FreshetUnpack/UnpackHelper``).
///
/// A helper reads the answer from a file and writes to a pipe. The pipe's end is read on the loop, and a long content
/// is stored piece by piece, so neither the daemon nor the helper has a long content in memory.
package struct Unpacker: Unpacking {
    /// The number of helpers that run at the same time, each with up to ``FreshetUnpack/UnpackHelper/memoryLimit``.
    package static let concurrency = 2

    private let loop: EventLoop
    private let workers: WorkerPool
    private let program: String
    private let permits = AsyncSemaphore(limit: Unpacker.concurrency)
    private let gaps: (@Sendable (HelperSandbox.Gaps) -> Void)?

    /// - Parameters:
    ///   - workers: the threads that open files and start helpers.
    ///   - program: the program that starts a helper, by default the running file, even if an upgrade has replaced it
    ///     on disk. It must support ``FreshetUnpack/UnpackHelper/argument``.
    ///   - gaps: called on the loop's thread for each helper whose sandbox is incomplete.
    package init(
        _ loop: EventLoop, workers: WorkerPool, program: String = "/proc/self/exe",
        gaps: (@Sendable (HelperSandbox.Gaps) -> Void)? = nil
    ) {
        self.loop = loop
        self.workers = workers
        self.program = program
        self.gaps = gaps
    }

    package func unpack(
        _ body: FetchedBody, by rule: UnpackRule, maxBytes: UInt64, bodyStore: (any BodyStoring)?
    ) async throws(FetchError) -> FetchedBody {
        let request = UnpackRequest(rule, maxOutput: maxBytes)
        return try await permits.pass { () throws(FetchError) in
            if Task.isCancelled { throw .cancelled }
            let run = CommandRun(
                loop, workers,
                ChildProcess.Command(
                    path: program, arguments: [UnpackHelper.argument] + request.arguments,
                    environment: UnpackHelper.environment),
                .data(CommandOutput(limit: maxBytes, bodyStore: bodyStore), { _ in }),
                input: try await input(body), startsProcesses: false)
            return try await run.run { exit, end in
                let report = UnpackReport(end)
                if let report, !report.gaps.isEmpty { gaps?(report.gaps) }
                return UnpackFailure.of(exit, report)
            }
        }
    }

    /// The body as a file.
    private func input(_ body: FetchedBody) async throws(FetchError) -> OwnedDescriptor {
        do throws(SystemCallError) {
            if case .kept(let kept) = body, let path = kept.pending.path {
                return try await workers.run { () throws(SystemCallError) in
                    try OwnedDescriptor(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), of: "open", subject: path)
                }
            }
        } catch {
            throw .failed(RunFailure(.local, "could not read the stored answer: \(error.reason)"))
        }
        let bytes = try await body.content()
        do throws(SystemCallError) {
            return try await workers.run { () throws(SystemCallError) in try .memoryFile("freshet-unpack", bytes) }
        } catch {
            throw .failed(RunFailure(.local, "could not pass the answer to the helper: \(error)"))
        }
    }
}

/// Reports gaps in the sandbox of all helpers once.
package final class SandboxGapsReport: Sendable {
    private let handler: Mutex<(@Sendable (HelperSandbox.Gaps) -> Void)?>

    /// - Parameter handler: called once, from any thread.
    package init(_ handler: @escaping @Sendable (HelperSandbox.Gaps) -> Void) { self.handler = Mutex(handler) }

    package func report(_ gaps: HelperSandbox.Gaps) { handler.withLock { $0.take() }?(gaps) }
}

/// Makes the failures of a helper.
enum UnpackFailure {
    /// Nil: the helper has written the whole content.
    static func of(_ exit: ChildProcess.Exit, _ report: UnpackReport?) -> RunFailure? {
        if let report {
            // A longer message of a helper that is not trustworthy has been cut already.
            let message = Text.escaped(report.message)
            switch report.status {
            case .done: if exit == .exited(status: 0) { return nil }
            case .invalid: return RunFailure(.content, message)
            case .unavailable: return RunFailure(.local, message)
            case .notConfined:
                return RunFailure(.local, "the helper could not set up its sandbox and read nothing: \(message)")
            }
        }
        switch exit {
        case .signalled(SIGXCPU):
            return RunFailure(
                .content, "unpacking took more than \(UnpackHelper.processorLimit) s of processor time")
        case .signalled(SIGSYS):
            return RunFailure(
                .content, "unpacking was stopped: the helper made a system call that the sandbox forbids")
        default:
            return RunFailure(
                .content,
                "unpacking ran out of memory or crashed: the helper \(exit); its memory limit is "
                    + "\(UnpackHelper.memoryLimit >> 20) MiB")
        }
    }
}

extension UnpackRequest {
    fileprivate init(_ rule: UnpackRule, maxOutput: UInt64) {
        switch rule {
        case .compressed(let compression):
            let format: Format =
                switch compression {
                case .gzip: .gzip
                case .zstd: .zstd
                case .xz: .xz
                case .bzip2: .bzip2
                }
            self.init(format, maxOutput: maxOutput)
        case .member(let archive, let path):
            self.init(archive == .tar ? .tar : .zip, member: path, maxOutput: maxOutput)
        }
    }
}
