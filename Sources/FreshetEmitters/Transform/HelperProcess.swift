import FreshetEventLoop
import FreshetHelper
import Glibc

/// One jq helper: its process, and the daemon's end of the socket that is the helper's input and output. It serves one
/// request at a time and is isolated to the loop's thread.
actor HelperProcess {
    /// The most bytes of one read.
    static let chunk = 64 << 10

    private struct Exchange {
        var waiter: CheckedContinuation<HelperReply?, Never>
        /// The unsent rest of the head and of the input.
        var unsent: [ArraySlice<UInt8>]
        var decoder: HelperReply.Decoder
    }

    private let loop: EventLoop
    private let child: ChildProcess
    private var socket: OwnedDescriptor?
    private var watch: DescriptorWatch?
    private var exchange: Exchange?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private init(_ loop: EventLoop, _ child: ChildProcess, _ socket: OwnedDescriptor) {
        self.loop = loop
        self.child = child
        self.socket = socket
    }

    /// Starts a helper, on a worker: starting a process blocks the thread until the new program has been loaded.
    static func start(
        _ loop: EventLoop, workers: WorkerPool, _ command: ChildProcess.Command
    ) async throws(SystemCallError) -> HelperProcess {
        let helper = try await workers.run { () throws(SystemCallError) in
            let (ours, theirs) = try SocketPair.make()
            let null = try OwnedDescriptor(open("/dev/null", O_WRONLY | O_CLOEXEC), of: "open", subject: "/dev/null")
            let child = try ChildProcess(
                loop, command, input: theirs.rawValue, output: theirs.rawValue, error: null.rawValue)
            return HelperProcess(loop, child, ours)
        }
        do {
            try await helper.startReading()
        } catch {
            await helper.end()
            throw error
        }
        return helper
    }

    private func startReading() throws(SystemCallError) {
        guard let socket else { return }
        watch = try loop.watch(socket.rawValue, for: .read, named: "jq helper") { [weak self] readiness in
            self?.assumeIsolated { $0.ready(readiness) }
        }
    }

    /// The process's id.
    nonisolated var identifier: Int32 { child.identifier }

    /// The processor time that the process has used since its start.
    nonisolated var processorTime: Duration {
        var time = timespec()
        // A process that has ended has no clock.
        var clock = clockid_t()
        guard clock_getcpuclockid(child.identifier, &clock) == 0, clock_gettime(clock, &time) == 0 else { return .zero }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Limits the writable memory of the process, in bytes, from now on (RLIMIT_DATA). Allocated memory stays
    /// allocated.
    nonisolated func limit(memory: UInt64) throws(SystemCallError) {
        try ProcessMemory.limit(child.identifier, to: memory)
    }

    /// How the process ended; nil while it runs.
    nonisolated var result: ChildProcess.Exit? { child.result }

    /// Whether the helper can serve a request. This checks the socket directly: if the helper was just killed, perhaps
    /// by the kernel for lack of memory, the socket is closed before the loop receives the event.
    var isUsable: Bool {
        guard let socket, child.result == nil else { return false }
        var byte: UInt8 = 0
        // Without a request, a helper must not send anything: a byte from it means that it is not trustworthy.
        return recv(socket.rawValue, &byte, 1, Int32(MSG_DONTWAIT | MSG_PEEK)) < 0
            && (errno == EAGAIN || errno == EINTR)
    }

    /// Sends a request and awaits its reply; nil if the helper ended, or sent an invalid reply. Cancelling the task
    /// kills the helper, because nothing else ends a program. A helper without a reply cannot be used again.
    func exchange(_ request: HelperRequest) async -> HelperReply? {
        guard isUsable else { return nil }
        let child = child
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                // The socket may have been closed since the check, because other tasks may run at a suspension.
                guard socket != nil else { return waiter.resume(returning: nil) }
                exchange = Exchange(
                    waiter: waiter, unsent: [request.head[...], request.input[...]],
                    decoder: HelperReply.Decoder(maxOutput: request.maxOutput))
                send()
            }
        } onCancel: {
            if child.result == nil { child.signal(SIGKILL) }
        }
    }

    /// Ends the process and awaits its end.
    @discardableResult
    func end() async -> ChildProcess.Exit {
        kill()
        return await child.wait()
    }

    /// Ends the process without waiting. Keep this object until ``result`` is set, otherwise a zombie remains.
    func kill() {
        hangUp()
        if child.result == nil { child.signal(SIGKILL) }
    }

    // MARK: The socket

    private func ready(_ readiness: Readiness) {
        if readiness.contains(.write) { send() }
        if !readiness.isDisjoint(with: [.read, .hangup, .error]) { receive() }
    }

    /// Sends as much as the socket accepts.
    private func send() {
        guard let socket else { return }
        while let piece = exchange?.unsent.first {
            guard !piece.isEmpty else {
                exchange?.unsent.removeFirst()
                continue
            }
            let count = piece.withUnsafeBytes {
                Glibc.send(socket.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            if count < 0 && errno == EINTR { continue }
            // All errors except a full socket appear as the end of the input.
            guard count > 0 else { break }
            exchange?.unsent[0] = piece.dropFirst(count)
        }
        watch?.change(to: exchange?.unsent.isEmpty == false ? [.read, .write] : .read)
    }

    private func receive() {
        guard let socket else { return }
        let count = withUnsafeTemporaryAllocation(byteCount: Self.chunk, alignment: 16) { buffer in
            let count = recv(socket.rawValue, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            if count > 0 { take(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            return count
        }
        if count == 0 || count < 0 && errno != EAGAIN && errno != EINTR { hangUp() }
    }

    private func take(_ piece: UnsafeRawBufferPointer) {
        // Data without a request is not trustworthy.
        guard exchange != nil else { return hangUp() }
        do throws(HelperReply.Decoder.InvalidReply) {
            guard let reply = try exchange?.decoder.take(piece) else { return }
            finish(reply)
        } catch {
            hangUp()
        }
    }

    private func hangUp() {
        watch?.cancel()
        watch = nil
        socket = nil
        finish(nil)
    }

    private func finish(_ reply: HelperReply?) {
        let waiter = exchange?.waiter
        exchange = nil
        waiter?.resume(returning: reply)
    }
}
