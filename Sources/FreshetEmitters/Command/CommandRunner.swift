package import FreshetEventLoop
package import FreshetPipelines
import Glibc
import Synchronization

/// Runs commands whose standard output is data.
///
/// A command is an absolute path and its arguments; there is no shell. It starts in a process group of its own with
/// `/dev/null` as its input and a small clean environment. What its group has left behind when it ends is killed, so
/// that a command that goes on in the background is none that can be used here.
package struct CommandRunner: Sendable {
    /// So much of the end of standard error is kept for the message of a failure, in bytes.
    static let errorTailLimit = 4_096
    /// How long a cancelled command may take to end in its own way after SIGTERM, before SIGKILL.
    static let terminationGrace: Duration = .seconds(2)
    /// systemd's own default, systemd.exec(5).
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

    /// What commands get to know of this process's environment: PATH and HOME. The notify socket, the listen
    /// descriptors, the credentials' directory and proxies with passwords are none of their business.
    package static func cleanEnvironment() -> [String: String] {
        var environment = ["LANG": "C.UTF-8", "PATH": defaultPath]
        for name in ["PATH", "HOME"] {
            if let value = getenv(name) { environment[name] = String(cString: value) }
        }
        return environment
    }

    /// Runs a command to its end and returns what it wrote to standard output. If that is long it goes to the keeper, if
    /// there is one, while the command writes it.
    ///
    /// Cancelling the task ends the command: SIGTERM to its process group, after ``terminationGrace`` SIGKILL to all that
    /// it has started. When this has returned or thrown, no process of the command is left.
    ///
    /// - Parameter progress: called on the loop's thread with the bytes so far.
    func run(
        _ command: [String], maxBytes: UInt64, keeper: (any BodyStoring)? = nil,
        progress: @escaping @Sendable (UInt64) -> Void
    ) async throws(FetchError) -> FetchedBody {
        guard !Task.isCancelled else { throw .cancelled }
        guard let path = command.first, path.hasPrefix("/") else {
            throw .failed(
                RunFailure(.local, "'\(Text.escaped(command.first ?? ""))' is no absolute path; write the command's"))
        }
        let run = CommandRun(
            loop, workers,
            ChildProcess.Command(path: path, arguments: Array(command.dropFirst()), environment: environment),
            .data(CommandOutput(limit: maxBytes, keeper: keeper), progress))
        return try await run.run()
    }

    /// Runs a command for what it does: to its end, or until its time is over. It is ended as one that is cancelled.
    ///
    /// - Parameters:
    ///   - command: an absolute path and arguments.
    ///   - variables: what its environment has besides.
    ///   - directory: where it starts.
    ///   - timeout: how long it may take.
    ///   - output: called on the loop's thread with pieces of what it writes, to standard output and standard error in
    ///     one; however much that is.
    package func perform(
        _ command: [String], variables: [String: String], directory: String, timeout: Duration,
        output: @escaping @Sendable (UnsafeRawBufferPointer) -> Void
    ) async throws(FetchError) {
        _ = try await listening(command, variables, directory, timeout, output).run()
    }

    /// The same for a command whose exit status is its answer: any but 0 is no failure of it.
    package func ask(
        _ command: [String], variables: [String: String], directory: String, timeout: Duration,
        output: @escaping @Sendable (UnsafeRawBufferPointer) -> Void
    ) async throws(FetchError) -> Int32 {
        try await listening(command, variables, directory, timeout, output).answer()
    }

    private func listening(
        _ command: [String], _ variables: [String: String], _ directory: String, _ timeout: Duration,
        _ output: @escaping @Sendable (UnsafeRawBufferPointer) -> Void
    ) throws(FetchError) -> CommandRun {
        guard !Task.isCancelled, let path = command.first else { throw .cancelled }
        return CommandRun(
            loop, workers,
            ChildProcess.Command(
                path: path, arguments: Array(command.dropFirst()),
                environment: environment.merging(variables) { $1 }, directory: directory),
            .listener(output), timeout: timeout)
    }
}

/// One command under way. It lives on the loop's thread, where its output arrives.
private actor CommandRun {
    /// Read at once; more waits for the loop's next turn, so that a flood from one command does not starve the rest.
    static let chunk = 64 << 10
    /// So often it is read once more after the end: the last bytes of a flood are as good as any.
    static let lastPieces = 16

    /// Who takes what the command writes.
    enum Outlet: Sendable {
        /// Standard output is gathered, up to a limit; of standard error the end is kept.
        case data(CommandOutput, @Sendable (UInt64) -> Void)
        /// Both are one stream.
        case listener(@Sendable (UnsafeRawBufferPointer) -> Void)
    }

    private let loop: EventLoop
    private let workers: WorkerPool
    private let command: ChildProcess.Command
    private let outlet: Outlet
    private let timeout: Duration?

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
        _ loop: EventLoop, _ workers: WorkerPool, _ command: ChildProcess.Command, _ outlet: Outlet,
        timeout: Duration? = nil
    ) {
        self.loop = loop
        self.workers = workers
        self.command = command
        self.outlet = outlet
        self.timeout = timeout
    }

    /// What it has written, if it succeeds.
    func run() async throws(FetchError) -> FetchedBody {
        do throws(FetchError) {
            let exit = try await end()
            guard exit == .exited(status: 0) else { throw fault(exit) }
            guard case .data(let output, _) = outlet else { return .bytes([]) }
            return try await output.finish()
        } catch {
            if case .data(let output, _) = outlet { await output.discard() }
            throw error
        }
    }

    /// Its exit status.
    func answer() async throws(FetchError) -> Int32 {
        let exit = try await end()
        guard case .exited(let status) = exit else { throw fault(exit) }
        return status
    }

    private func fault(_ exit: ChildProcess.Exit) -> FetchError {
        let words = errors.lastLine.map { ": \(Text.escaped($0))" } ?? ""
        return .failed(RunFailure(.local, "\(Text.escaped(command.path)) \(exit)\(words)"))
    }

    /// Starts it and awaits its end.
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
        if case .data(let output, _) = outlet {
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
                    "\(Text.escaped(command.path)) was ended, as it took longer than \(Text.seconds(timeout))"))
        }
        return exit
    }

    /// Awaits the end of the process, and keeps its output aside meanwhile if it is long.
    private func exit(of child: ChildProcess) async -> ChildProcess.Exit {
        guard case .data(let output, _) = outlet, output.isKept else { return await child.wait() }
        async let exit = exit(of: child, ending: output)
        while let piece = await output.next() {
            // There is space for one more.
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
        let null = try OwnedDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC), of: "open", subject: "/dev/null")
        let (outputPipe, outputEnd) = try Self.makePipe()
        let (errorPipe, errorEnd) = try Self.makePipe()
        let (loop, command, isOneStream) = (loop, command, isListener)
        // On a worker: starting a process suspends its thread until the new program is in place.
        let child = try await workers.run { () throws(SystemCallError) in
            try ChildProcess(
                loop, command, input: null.rawValue, output: outputEnd.rawValue,
                error: isOneStream ? outputEnd.rawValue : errorEnd.rawValue, endsDescendants: true)
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

    /// A pipe of which only our end does not block. Children are started with no descriptors but their own three, so
    /// that the moment between pipe(2) and fcntl(2) leaks nothing.
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
        guard case .data(let output, _) = outlet, output.isFull else { return }
        // The command waits for the disk. Without a watch, as the end of the pipe would wake the loop again and again.
        outputWatch = nil
        isOutputPaused = true
    }

    /// Goes on reading after a pause.
    private func watchOutput() {
        guard isOutputPaused, let outputPipe else { return }
        isOutputPaused = false
        do throws(SystemCallError) {
            outputWatch = try watch(outputPipe)
        } catch {
            // Nothing would be read any more, and the command waits.
            child?.signal(SIGKILL)
        }
    }

    private func readErrors() {
        if readErrorsOnce() == .end { errorWatch = nil }
    }

    private var isListener: Bool { if case .listener = outlet { true } else { false } }

    private func readOutputOnce() -> ReadResult {
        guard let outputPipe, !isTooLarge else { return .end }
        switch outlet {
        case .data(let output, let progress): return gather(outputPipe, output, progress)
        case .listener(let listener):
            return Self.read(outputPipe) { bytes in
                errors.append(bytes)
                listener(bytes)
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

    /// Takes what the pipes still hold, without waiting: a process that could not be ended may keep them open for ever.
    private func finishReading() async {
        if case .data(let output, _) = outlet {
            while readOutputOnce() == .data { await output.keepFull() }
        }
        // A flood that nothing bounds is no reason to stay here.
        for _ in 0..<Self.lastPieces { guard isListener, readOutputOnce() == .data else { break } }
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

/// The end of a cancelled command: asked first, then made, until it has happened. It may begin on any thread.
private final class Termination: Sendable {
    private let child: ChildProcess
    private let timer = Mutex<LoopTimer?>(nil)

    init(_ loop: EventLoop, _ child: ChildProcess) {
        self.child = child
        timer.withLock { $0 = LoopTimer(loop) { [weak self] in self?.press(SIGKILL) } }
    }

    func begin() { press(SIGTERM) }

    func end() { timer.withLock { $0 }?.disarm() }

    private func press(_ signal: Int32) {
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

    /// At most the limit.
    var last: ArraySlice<UInt8> { bytes.suffix(limit) }

    mutating func append(_ piece: some Collection<UInt8>) {
        bytes.append(contentsOf: piece.suffix(limit))
        // Moving once per limit's worth of bytes keeps the cost of each byte constant.
        if bytes.count > 2 * limit { bytes.removeFirst(bytes.count - limit) }
    }

    /// The last line that has more than white space, without the space around it; nil if there is none.
    var lastLine: ArraySlice<UInt8>? {
        let isSpace = { (byte: UInt8) in byte == 0x20 || (0x09...0x0D).contains(byte) }
        guard let end = last.lastIndex(where: { !isSpace($0) }) else { return nil }
        let text = last[...end]
        let line = text.lastIndex { $0 == 0x0A || $0 == 0x0D }.map { text[($0 + 1)...] } ?? text
        return line.drop(while: isSpace)
    }
}
