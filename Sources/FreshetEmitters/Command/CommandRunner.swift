package import FreshetEventLoop
package import FreshetPipelines
import Glibc
import Synchronization

/// Runs commands whose standard output is data.
///
/// A command is an absolute path and its arguments; there is no shell. It starts in a new process group with
/// `/dev/null` as its input and a small clean environment. When the command ends, the remaining processes of its group
/// are killed, so a command cannot continue in the background.
package struct CommandRunner: Sendable {
    /// The number of bytes from the end of standard error that are kept for the message of a failure.
    static let errorTailLimit = 4_096
    /// How long a cancelled command may take to exit after SIGTERM, before SIGKILL.
    static let terminationGrace: Duration = .seconds(2)
    /// systemd's default, systemd.exec(5).
    static let defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    let loop: EventLoop
    let workers: WorkerPool
    let environment: [String: String]

    /// - Parameter environment: the whole environment of the commands.
    package init(
        _ loop: EventLoop, workers: WorkerPool, environment: [String: String] = CommandRunner.cleanEnvironment()
    ) {
        self.loop = loop
        self.workers = workers
        self.environment = environment
    }

    /// The part of this process's environment that commands get: PATH and HOME. Commands do not get the notify socket,
    /// the listen descriptors, the credentials' directory or proxies with passwords.
    package static func cleanEnvironment() -> [String: String] {
        var environment = ["LANG": "C.UTF-8", "PATH": defaultPath]
        for name in ["PATH", "HOME"] {
            if let value = getenv(name) { environment[name] = String(cString: value) }
        }
        return environment
    }

    /// Runs a command to its end and returns its standard output. A long output is written to `bodyStore`, if it is not
    /// nil, while the command runs.
    ///
    /// Cancelling the task ends the command: SIGTERM to its process group and, after ``terminationGrace``, SIGKILL to
    /// all processes that the command has started. When this returns or throws, no process of the command is left.
    ///
    /// - Parameter progress: called on the loop's thread with the number of bytes so far.
    func run(
        _ command: [String], maxBytes: UInt64, bodyStore: (any BodyStoring)? = nil,
        progress: @escaping @Sendable (UInt64) -> Void
    ) async throws(FetchError) -> FetchedBody {
        guard !Task.isCancelled else { throw .cancelled }
        guard let path = command.first, path.hasPrefix("/") else {
            throw .failed(
                RunFailure(.local, "'\(Text.escaped(command.first ?? ""))' is not an absolute path; use one"))
        }
        let run = CommandRun(
            loop, workers,
            ChildProcess.Command(path: path, arguments: Array(command.dropFirst()), environment: environment),
            .data(CommandOutput(limit: maxBytes, bodyStore: bodyStore), progress))
        return try await run.run()
    }

    /// Runs a command for its effects: to its end, or until the timeout, which ends the command as a cancellation does.
    ///
    /// - Parameters:
    ///   - command: an absolute path and arguments.
    ///   - variables: additional environment variables.
    ///   - directory: the working directory.
    ///   - timeout: how long the command may take.
    ///   - output: called on the loop's thread with pieces of the output, which is standard output and standard error
    ///     combined, without a limit.
    package func perform(
        _ command: [String], variables: [String: String], directory: String, timeout: Duration,
        output: @escaping @Sendable (UnsafeRawBufferPointer) -> Void
    ) async throws(FetchError) {
        _ = try await makeRun(command, variables, directory, timeout, output).run()
    }

    /// Runs a command as ``perform(_:variables:directory:timeout:output:)`` does, and returns its exit status. A status
    /// other than 0 is not a failure.
    package func exitStatus(
        _ command: [String], variables: [String: String], directory: String, timeout: Duration,
        output: @escaping @Sendable (UnsafeRawBufferPointer) -> Void
    ) async throws(FetchError) -> Int32 {
        try await makeRun(command, variables, directory, timeout, output).exitStatus()
    }

    private func makeRun(
        _ command: [String], _ variables: [String: String], _ directory: String, _ timeout: Duration,
        _ output: @escaping @Sendable (UnsafeRawBufferPointer) -> Void
    ) throws(FetchError) -> CommandRun {
        guard !Task.isCancelled, let path = command.first else { throw .cancelled }
        return CommandRun(
            loop, workers,
            ChildProcess.Command(
                path: path, arguments: Array(command.dropFirst()),
                environment: environment.merging(variables) { $1 }, directory: directory),
            .stream(output), timeout: timeout)
    }
}

/// One command in progress. It is isolated to the loop's thread, where its output arrives.
actor CommandRun {
    /// The most bytes of one read. The rest is read in the loop's next round, so that a command with much output does
    /// not block other work.
    static let chunk = 64 << 10
    /// The most reads after the end of the command if the length of the output is not limited.
    static let lastPieces = 16

    /// The use of the command's output.
    enum OutputMode: Sendable {
        /// Standard output is collected, up to a limit; the end of standard error is kept.
        case data(CommandOutput, @Sendable (UInt64) -> Void)
        /// Standard output and standard error are one stream.
        case stream(@Sendable (UnsafeRawBufferPointer) -> Void)
    }

    private let loop: EventLoop
    private let workers: WorkerPool
    private let command: ChildProcess.Command
    private let mode: OutputMode
    private let timeout: Duration?
    /// The command's standard input; nil: `/dev/null`.
    private let input: OwnedDescriptor?
    /// Whether the command may start processes, which have to end with it.
    private let startsProcesses: Bool

    private var child: ChildProcess?
    private var errors = Tail(limit: CommandRunner.errorTailLimit)
    private var isTooLarge = false
    private var isTooLate = false
    private var outputPipe: OwnedDescriptor?
    private var errorPipe: OwnedDescriptor?
    private var outputWatch: DescriptorWatch?
    private var errorWatch: DescriptorWatch?
    private var isOutputPaused = false

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(
        _ loop: EventLoop, _ workers: WorkerPool, _ command: ChildProcess.Command, _ mode: OutputMode,
        timeout: Duration? = nil, input: OwnedDescriptor? = nil, startsProcesses: Bool = true
    ) {
        self.input = input
        self.startsProcesses = startsProcesses
        self.loop = loop
        self.workers = workers
        self.command = command
        self.mode = mode
        self.timeout = timeout
    }

    /// Runs the command and returns its output if the command succeeds.
    func run() async throws(FetchError) -> FetchedBody {
        do throws(FetchError) {
            let exit = try await end()
            guard exit == .exited(status: 0) else { throw error(exit) }
            guard case .data(let output, _) = mode else { return .bytes([]) }
            return try await output.finish()
        } catch {
            if case .data(let output, _) = mode { await output.discard() }
            throw error
        }
    }

    /// Runs the command and returns its exit status.
    func exitStatus() async throws(FetchError) -> Int32 {
        let exit = try await end()
        guard case .exited(let status) = exit else { throw error(exit) }
        return status
    }

    /// Runs the command and returns its output if the command succeeds.
    ///
    /// - Parameter failure: why the command did not succeed, from its exit and the end of its standard error; nil: it
    ///   succeeded.
    func run(
        unless failure: @Sendable (ChildProcess.Exit, [UInt8]) -> RunFailure?
    ) async throws(FetchError) -> FetchedBody {
        guard case .data(let output, _) = mode else { return .bytes([]) }
        do throws(FetchError) {
            let exit = try await end()
            if let failure = failure(exit, Array(errors.last)) { throw .failed(failure) }
            return try await output.finish()
        } catch {
            await output.discard()
            throw error
        }
    }

    private func error(_ exit: ChildProcess.Exit) -> FetchError {
        let detail = errors.lastLine.map { ": \(Text.escaped($0))" } ?? ""
        return .failed(RunFailure(.local, "\(Text.escaped(command.path)) \(exit)\(detail)"))
    }

    /// Starts the command and awaits its end.
    private func end() async throws(FetchError) -> ChildProcess.Exit {
        let child: ChildProcess
        do {
            child = try await start()
        } catch {
            throw .failed(RunFailure(.local, "could not run \(Text.escaped(command.path)): \(error.reason)"))
        }
        let termination = Termination(loop, child)
        let timer = timeout.map { timeout in
            let timer = LoopTimer(loop) { [weak self] in self?.assumeIsolated { $0.timeIsOver(termination) } }
            timer.arm(at: .now + timeout)
            return timer
        }
        let exit = await withTaskCancellationHandler {
            await self.exit(of: child)
        } onCancel: {
            termination.begin()
        }
        termination.end()
        timer?.disarm()
        await finishReading()
        guard !Task.isCancelled else { throw .cancelled }
        if case .data(let output, _) = mode {
            if let failure = output.failure { throw .failed(failure) }
            if isTooLarge {
                throw .failed(
                    SizeLimit.exceeded(by: "the output of \(Text.escaped(command.path))", limit: output.limit))
            }
        }
        if isTooLate, let timeout {
            throw .failed(
                RunFailure(
                    .deadline,
                    "\(Text.escaped(command.path)) was stopped: it took longer than \(Text.seconds(timeout))"))
        }
        return exit
    }

    /// Awaits the end of the process, and stores its output meanwhile if it is long.
    private func exit(of child: ChildProcess) async -> ChildProcess.Exit {
        guard case .data(let output, _) = mode, output.isKept else { return await child.wait() }
        async let exit = exit(of: child, ending: output)
        while let piece = await output.next() {
            // The output can take another piece.
            watchOutput()
            if await !output.keep(piece), child.result == nil { child.signal(SIGKILL) }
        }
        return await exit
    }

    private func exit(of child: ChildProcess, ending output: CommandOutput) async -> ChildProcess.Exit {
        let exit = await child.wait()
        output.end()
        return exit
    }

    private func timeIsOver(_ termination: Termination) {
        guard child?.result == nil else { return }
        isTooLate = true
        termination.begin()
    }

    private func start() async throws(SystemCallError) -> ChildProcess {
        let input: OwnedDescriptor
        if let given = self.input {
            input = given
        } else {
            input = try OwnedDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC), of: "open", subject: "/dev/null")
        }
        let (outputPipe, outputEnd) = try Self.makePipe()
        let (errorPipe, errorEnd) = try Self.makePipe()
        let (loop, command, combinesOutputs, startsProcesses) = (loop, command, isStream, startsProcesses)
        // On a worker: starting a process blocks the thread until the new program has been loaded.
        let child = try await workers.run { () throws(SystemCallError) in
            try ChildProcess(
                loop, command, input: input.rawValue, output: outputEnd.rawValue,
                error: combinesOutputs ? outputEnd.rawValue : errorEnd.rawValue, endsDescendants: startsProcesses)
        }
        self.child = child
        self.outputPipe = outputPipe
        self.errorPipe = errorPipe
        do {
            outputWatch = try watch(outputPipe)
            errorWatch = try loop.watch(errorPipe.rawValue, for: .read, named: "command output") { [weak self] _ in
                self?.assumeIsolated { $0.readErrors() }
            }
        } catch {
            child.signal(SIGKILL)
            _ = await child.wait()
            throw error
        }
        return child
    }

    /// Makes a pipe whose read end is non-blocking. Children get only their three standard descriptors, so no
    /// descriptor leaks between pipe(2) and fcntl(2).
    private static func makePipe() throws(SystemCallError) -> (read: OwnedDescriptor, write: OwnedDescriptor) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemCallError("pipe", errno: errno) }
        let (read, write) = (OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1]))
        _ = fcntl(read.rawValue, F_SETFD, FD_CLOEXEC)
        _ = fcntl(write.rawValue, F_SETFD, FD_CLOEXEC)
        guard fcntl(read.rawValue, F_SETFL, O_NONBLOCK) == 0 else { throw SystemCallError("fcntl", errno: errno) }
        return (read, write)
    }

    // MARK: Output

    private enum ReadResult { case data, nothing, end }

    private func watch(_ pipe: OwnedDescriptor) throws(SystemCallError) -> DescriptorWatch {
        try loop.watch(pipe.rawValue, for: .read, named: "command output") { [weak self] _ in
            self?.assumeIsolated { $0.readOutput() }
        }
    }

    private func readOutput() {
        if readOutputOnce() == .end { outputWatch = nil }
        guard case .data(let output, _) = mode, output.isFull else { return }
        // The command waits until the piece is stored. The watch is removed, because the end of the pipe would wake the
        // loop repeatedly.
        outputWatch = nil
        isOutputPaused = true
    }

    /// Continues to read after a pause.
    private func watchOutput() {
        guard isOutputPaused, let outputPipe else { return }
        isOutputPaused = false
        do throws(SystemCallError) {
            outputWatch = try watch(outputPipe)
        } catch {
            // Without a watch nothing would be read, and the command would wait for ever.
            child?.signal(SIGKILL)
        }
    }

    private func readErrors() {
        if readErrorsOnce() == .end { errorWatch = nil }
    }

    private var isStream: Bool { if case .stream = mode { true } else { false } }

    private func readOutputOnce() -> ReadResult {
        guard let outputPipe, !isTooLarge else { return .end }
        switch mode {
        case .data(let output, let progress): return gather(outputPipe, output, progress)
        case .stream(let stream):
            return Self.read(outputPipe) { bytes in
                errors.append(bytes)
                stream(bytes)
            }
        }
    }

    private func gather(
        _ pipe: OwnedDescriptor, _ output: CommandOutput, _ progress: (UInt64) -> Void
    ) -> ReadResult {
        var piece = 0
        let result = Self.read(pipe) { bytes in
            piece = bytes.count
            isTooLarge = !output.take(bytes)
        }
        guard !isTooLarge else {
            child?.signal(SIGKILL)
            return .end
        }
        if piece > 0 { progress(UInt64(output.count)) }
        return result
    }

    private func readErrorsOnce() -> ReadResult {
        guard let errorPipe else { return .end }
        return Self.read(errorPipe) { errors.append($0) }
    }

    /// Reads the rest of the pipes, without waiting: a process that could not be killed may keep the pipes open.
    private func finishReading() async {
        if case .data(let output, _) = mode {
            while readOutputOnce() == .data { await output.keepFull() }
        }
        // The number of reads is limited, because the length of the output is not.
        for _ in 0..<Self.lastPieces { guard isStream, readOutputOnce() == .data else { break } }
        for _ in 0..<Self.lastPieces { guard readErrorsOnce() == .data else { break } }
        outputWatch = nil
        errorWatch = nil
        outputPipe = nil
        errorPipe = nil
    }

    private static func read(_ pipe: OwnedDescriptor, _ take: (UnsafeRawBufferPointer) -> Void) -> ReadResult {
        withUnsafeTemporaryAllocation(byteCount: chunk, alignment: 16) { buffer in
            let count = Glibc.read(pipe.rawValue, buffer.baseAddress, buffer.count)
            if count > 0 {
                take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                return .data
            }
            return count < 0 && (errno == EAGAIN || errno == EINTR) ? .nothing : .end
        }
    }
}

/// Ends a cancelled command: sends SIGTERM, then SIGKILL until the command has ended. It may begin on any thread.
private final class Termination: Sendable {
    private let child: ChildProcess
    private let timer = Mutex<LoopTimer?>(nil)

    init(_ loop: EventLoop, _ child: ChildProcess) {
        self.child = child
        timer.withLock { $0 = LoopTimer(loop) { [weak self] in self?.sendSignal(SIGKILL) } }
    }

    func begin() { sendSignal(SIGTERM) }

    func end() { timer.withLock { $0 }?.disarm() }

    private func sendSignal(_ signal: Int32) {
        guard child.result == nil else { return }
        child.signal(signal)
        timer.withLock { $0 }?.arm(at: .now + CommandRunner.terminationGrace)
    }
}

/// The last bytes of a stream.
struct Tail: Hashable, Sendable {
    private let limit: Int
    private var bytes: [UInt8] = []

    init(limit: Int) { self.limit = limit }

    /// The last bytes, at most `limit`.
    var last: ArraySlice<UInt8> { bytes.suffix(limit) }

    mutating func append(_ piece: some Collection<UInt8>) {
        bytes.append(contentsOf: piece.suffix(limit))
        // Removing bytes only once per `limit` bytes keeps the cost of each byte constant.
        if bytes.count > 2 * limit { bytes.removeFirst(bytes.count - limit) }
    }

    /// The last line that is not blank, without the white space around it; nil if all lines are blank.
    var lastLine: ArraySlice<UInt8>? {
        let isSpace = { (byte: UInt8) in byte == 0x20 || (0x09...0x0D).contains(byte) }
        guard let end = last.lastIndex(where: { !isSpace($0) }) else { return nil }
        let text = last[...end]
        let line = text.lastIndex { $0 == 0x0A || $0 == 0x0D }.map { text[($0 + 1)...] } ?? text
        return line.drop(while: isSpace)
    }
}
