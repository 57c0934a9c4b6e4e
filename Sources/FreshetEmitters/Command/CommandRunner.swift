package import FreshetEventLoop
import FreshetPipelines
import Glibc

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

    /// Runs a command to its end and returns what it wrote to standard output.
    ///
    /// Cancelling the task ends the command's process group: SIGTERM, after ``terminationGrace`` SIGKILL; when this has
    /// thrown, the command is gone.
    ///
    /// - Parameter progress: called on the loop's thread with the bytes so far.
    func run(
        _ command: [String], maxBytes: UInt64, progress: @escaping @Sendable (UInt64) -> Void
    ) async throws(FetchError) -> [UInt8] {
        guard !Task.isCancelled else { throw .cancelled }
        guard let path = command.first, path.hasPrefix("/") else {
            throw .failed(
                RunFailure(.local, "'\(Text.escaped(command.first ?? ""))' is no absolute path; write the command's"))
        }
        let run = CommandRun(
            loop, workers,
            ChildProcess.Command(path: path, arguments: Array(command.dropFirst()), environment: environment),
            maxBytes: maxBytes, progress: progress)
        return try await run.run()
    }
}

/// One command under way. It lives on the loop's thread, where its output arrives.
private actor CommandRun {
    /// Read at once; more waits for the loop's next turn, so that a flood from one command does not starve the rest.
    static let chunk = 64 << 10

    private let loop: EventLoop
    private let workers: WorkerPool
    private let command: ChildProcess.Command
    private let maxBytes: UInt64
    private let progress: @Sendable (UInt64) -> Void

    private var child: ChildProcess?
    private var output: [UInt8] = []
    private var errors = Tail(limit: CommandRunner.errorTailLimit)
    private var isTooLarge = false
    private var outputPipe: OwnedDescriptor?
    private var errorPipe: OwnedDescriptor?
    private var watches: [DescriptorWatch] = []

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(
        _ loop: EventLoop, _ workers: WorkerPool, _ command: ChildProcess.Command, maxBytes: UInt64,
        progress: @escaping @Sendable (UInt64) -> Void
    ) {
        self.loop = loop
        self.workers = workers
        self.command = command
        self.maxBytes = maxBytes
        self.progress = progress
    }

    func run() async throws(FetchError) -> [UInt8] {
        let child: ChildProcess
        do {
            child = try await start()
        } catch {
            throw .failed(RunFailure(.local, "could not run \(Text.escaped(command.path)): \(error.reason)"))
        }
        let termination = Termination(loop, child)
        let exit = await withTaskCancellationHandler {
            await child.wait()
        } onCancel: {
            termination.begin()
        }
        termination.end()
        // The leader has gone; what it left in its group must not outlive the run, nor hold the pipes open.
        child.signal(SIGKILL)
        finishReading()
        guard !Task.isCancelled else { throw .cancelled }
        guard !isTooLarge else {
            throw .failed(
                SizeLimit.exceeded(by: "the output of \(Text.escaped(command.path))", limit: maxBytes))
        }
        guard exit == .exited(status: 0) else {
            let words = errors.lastLine.map { ": \(Text.escaped($0))" } ?? ""
            throw .failed(RunFailure(.local, "\(Text.escaped(command.path)) \(exit)\(words)"))
        }
        return output
    }

    private func start() async throws(SystemCallError) -> ChildProcess {
        let null = try OwnedDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC), of: "open", subject: "/dev/null")
        let (outputPipe, outputEnd) = try Self.makePipe()
        let (errorPipe, errorEnd) = try Self.makePipe()
        let (loop, command) = (loop, command)
        // On a worker: starting a process suspends its thread until the new program is in place.
        let child = try await workers.run { () throws(SystemCallError) in
            try ChildProcess(
                loop, command, input: null.rawValue, output: outputEnd.rawValue, error: errorEnd.rawValue)
        }
        self.child = child
        self.outputPipe = outputPipe
        self.errorPipe = errorPipe
        do {
            watches = [
                try loop.watch(outputPipe.rawValue, for: .read) { [weak self] _ in
                    self?.assumeIsolated { $0.readOutput() }
                },
                try loop.watch(errorPipe.rawValue, for: .read) { [weak self] _ in
                    self?.assumeIsolated { $0.readErrors() }
                },
            ]
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

    private func readOutput() {
        if readOutputOnce() == .end { watches.first?.cancel() }
    }

    private func readErrors() {
        if readErrorsOnce() == .end { watches.last?.cancel() }
    }

    private func readOutputOnce() -> ReadResult {
        guard let outputPipe, !isTooLarge else { return .end }
        var piece = 0
        let result = Self.read(outputPipe) { bytes in
            piece = bytes.count
            guard UInt64(output.count) + UInt64(piece) <= maxBytes else {
                isTooLarge = true
                return
            }
            output.append(contentsOf: bytes)
        }
        guard !isTooLarge else {
            output = []
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

    /// Takes what the pipes still hold, without waiting: a process that left the group may keep them open for ever.
    private func finishReading() {
        while readOutputOnce() == .data {}
        // A flood into standard error is no reason to stay here; its last bytes are as good as any.
        for _ in 0..<16 { guard readErrorsOnce() == .data else { break } }
        for watch in watches { watch.cancel() }
        watches = []
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

/// The end of a cancelled command: asked first, then made. It may begin on any thread.
private final class Termination: Sendable {
    private let child: ChildProcess
    private let timer: LoopTimer

    init(_ loop: EventLoop, _ child: ChildProcess) {
        self.child = child
        timer = LoopTimer(loop) {
            guard child.result == nil else { return }
            child.signal(SIGKILL)
        }
    }

    func begin() {
        guard child.result == nil else { return }
        child.signal(SIGTERM)
        timer.arm(at: .now + CommandRunner.terminationGrace)
    }

    func end() { timer.disarm() }
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
