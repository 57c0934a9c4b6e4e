import FreshetEventLoop
import FreshetJQ
import Glibc

/// One jq helper: its process, and our end of the socket that is its input and output. It serves one request at a time
/// and lives on the loop's thread.
actor HelperProcess {
    /// Read at once.
    static let chunk = 64 << 10

    private struct Exchange {
        var waiter: CheckedContinuation<JQReply?, Never>
        /// What is still to be sent: the head, then the input, each from an offset.
        var unsent: [ArraySlice<UInt8>]
        var decoder: JQReply.Decoder
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

    /// Starts a helper, on a worker: starting a process suspends its thread until the new program is in place.
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
            try await helper.listen()
        } catch {
            await helper.end()
            throw error
        }
        return helper
    }

    private func listen() throws(SystemCallError) {
        guard let socket else { return }
        watch = try loop.watch(socket.rawValue, for: .read, named: "jq helper") { [weak self] readiness in
            self?.assumeIsolated { $0.ready(readiness) }
        }
    }

    /// The process's id.
    nonisolated var identifier: Int32 { child.identifier }

    /// The processor time that it has used since its start.
    nonisolated var processorTime: Duration {
        var time = timespec()
        // One that is gone has no clock.
        var clock = clockid_t()
        guard clock_getcpuclockid(child.identifier, &clock) == 0, clock_gettime(clock, &time) == 0 else { return .zero }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Limits its writable memory to so many bytes from now on (RLIMIT_DATA). What it has stays.
    nonisolated func limit(memory: UInt64) throws(SystemCallError) {
        try ProcessMemory.limit(child.identifier, to: memory)
    }

    /// How it ended, or nil while it runs.
    nonisolated var result: ChildProcess.Exit? { child.result }

    /// Whether it can serve a request. The socket itself is asked: one that was killed a moment ago, by the kernel for
    /// want of memory perhaps, has hung up before the loop hears of it.
    var isUsable: Bool {
        guard let socket, child.result == nil else { return false }
        var byte: UInt8 = 0
        // A helper that was asked nothing has nothing to say: not even a byte of it could be trusted.
        return recv(socket.rawValue, &byte, 1, Int32(MSG_DONTWAIT | MSG_PEEK)) < 0
            && (errno == EAGAIN || errno == EINTR)
    }

    /// Sends a request and awaits its reply; nil if the helper ended instead, or said what is no reply. Cancelling the
    /// task kills the helper, since nothing else ends a program. A helper that has not replied is of no more use.
    func exchange(_ request: JQRequest) async -> JQReply? {
        guard isUsable else { return nil }
        let child = child
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                // It may have hung up since the look: a suspension may let others run first.
                guard socket != nil else { return waiter.resume(returning: nil) }
                exchange = Exchange(
                    waiter: waiter, unsent: [request.head[...], request.input[...]],
                    decoder: JQReply.Decoder(maxOutput: request.maxOutput))
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

    /// Ends the process and does not wait: keep this object until ``result`` is there, or a zombie remains.
    func kill() {
        hangUp()
        if child.result == nil { child.signal(SIGKILL) }
    }

    // MARK: The socket

    private func ready(_ readiness: Readiness) {
        if readiness.contains(.write) { send() }
        if !readiness.isDisjoint(with: [.read, .hangup, .error]) { receive() }
    }

    /// Sends as much as the socket takes.
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
            // Anything but a full socket shows when reading, as its end.
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
        // Words without a question are none that could be trusted.
        guard exchange != nil else { return hangUp() }
        do throws(JQReply.Decoder.NoReply) {
            guard let reply = try exchange?.decoder.take(piece) else { return }
            answer(reply)
        } catch {
            hangUp()
        }
    }

    private func hangUp() {
        watch?.cancel()
        watch = nil
        socket = nil
        answer(nil)
    }

    private func answer(_ reply: JQReply?) {
        let waiter = exchange?.waiter
        exchange = nil
        waiter?.resume(returning: reply)
    }
}
