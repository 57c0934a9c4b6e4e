import FreshetEventLoop
import Glibc
import Synchronization

/// The server's side of one connection: performs the actions of a ``ConnectionStateMachine``.
///
/// One task serves the connection. The loop's handler answers calls of methods that do not wait
/// (``VarlinkInterface/ImmediateHandler``); for all other work it only wakes this task.
final class VarlinkConnection: Sendable {
    /// The bytes of one read: enough for a usual call, and for a batch of calls.
    static let readSize = 8_192
    /// SO_SNDBUF: the bytes of unread replies that the kernel keeps. The kernel doubles this value (socket(7)).
    static let sendBuffer: Int32 = 32_768

    /// What the loop's handler leaves to the serving task.
    enum Remainder {
        /// The next action, which the machine has returned already.
        case action(ConnectionStateMachine.Action)
        /// The rest of a reply, from this index on.
        case reply([UInt8], sent: Int)
    }

    struct State {
        var machine: ConnectionStateMachine
        var watch: DescriptorWatch?
        var hasBegun = false
        var interest: Interest = []
        /// The serving task while it waits until the socket is readable (`reader`) or writable (`writer`).
        var reader: CheckedContinuation<Void, Never>?
        var writer: CheckedContinuation<Void, Never>?
        /// The parent of the serving task, which cancels it at the end.
        var parent: CheckedContinuation<Void, Never>?
        var isOver = false
        var mayHaveMore = false
        var remainder: Remainder?
        var isWriting = false
        /// The current turn; nil: the connection waits, and its next work needs a new turn.
        var turn: FairScheduler.Turn?
        var silenceTimer: LoopTimer?
        var isSilenceTimerArmed = false

        /// Changes the events for which the loop watches the socket.
        mutating func set(_ interest: Interest) {
            guard interest != self.interest else { return }
            self.interest = interest
            watch?.change(to: interest)
        }

        /// Takes all waiting continuations. The resumed code reads the reason from the state.
        mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
            [reader.take(), writer.take(), parent.take()].compactMap { $0 }
        }
    }

    let peer: VarlinkPeer
    let client: ConnectionLimiter.Client
    private let accepted = ContinuousClock.Instant.now
    private let socket: OwnedDescriptor
    private let loop: EventLoop
    let router: VarlinkRouter
    let turns: FairScheduler
    private let silence: Duration
    private let stalled: @Sendable () -> Void
    let state: Mutex<State>

    /// - Parameter stalled: called when a reply waits until the client reads.
    init(
        _ socket: OwnedDescriptor, peer: VarlinkPeer, rank: ConnectionLimiter.Rank, loop: EventLoop,
        router: VarlinkRouter, turns: FairScheduler, limits: VarlinkServer.Limits,
        stalled: @escaping @Sendable () -> Void
    ) {
        client = ConnectionLimiter.Client(user: peer.user, rank: rank)
        self.stalled = stalled
        // Without this limit, a client that does not read occupies the system's maximum of kernel memory for a socket.
        var size = Self.sendBuffer
        setsockopt(socket.rawValue, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        self.turns = turns
        self.socket = socket
        self.peer = peer
        self.loop = loop
        self.router = router
        silence = limits.silence
        state = Mutex(
            State(
                machine: ConnectionStateMachine(
                    messageLimit: limits.messageBytes, silence: limits.silence, now: .now)))
    }

    /// Serves the client until it goes away, violates the protocol or is silent for too long, or the task is cancelled.
    func run() async {
        guard begin() else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await self.serve()
                self.endTurn()
                self.end()
            }
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if !state.isOver { state.parent = continuation }
                    return state.isOver
                }
                if isOver { continuation.resume() }
            }
            group.cancelAll()
        }
    }

    private func begin() -> Bool {
        let timer = LoopTimer(loop, named: "control connection") { [weak self] in self?.silenceTimerExpired() }
        do {
            let watch = try loop.watch(socket.rawValue, for: .read, named: "control connection") { [weak self] in
                self?.ready($0)
            }
            state.withLock { state in
                state.watch = watch
                state.hasBegun = true
                state.interest = .read
                state.silenceTimer = timer
                state.isSilenceTimerArmed = true
            }
            timer.arm(at: .now + silence)
            return true
        } catch {
            return false  // no memory for another watch: the socket is closed with this object
        }
    }

    /// The client and its present activity, for the choice of the connection that gives way.
    var occupant: ConnectionLimiter.Occupant {
        let activity = state.withLock { state -> ConnectionLimiter.Activity in
            // The client has gone away, even if its last calls have not had their turn.
            if state.isOver || (state.hasBegun && state.watch == nil) { return .abandoned }
            let isWaiting = state.reader != nil || state.writer != nil
            if let since = state.machine.waitingSince {
                if isWaiting { return .waiting(since: since) }
                if !state.machine.isCalling { return .queued(since: since) }
            }
            return state.machine.followingSince.map { .following(since: $0) } ?? .working
        }
        return ConnectionLimiter.Occupant(client: client, accepted: accepted, activity: activity)
    }

    /// The bytes of a reply that wait until the client reads, and since when.
    var pendingOutput: (bytes: Int, since: ContinuousClock.Instant?) {
        state.withLock { state in
            let bytes = state.machine.pendingOutput
            return (bytes, bytes > 0 ? state.machine.waitingSince : nil)
        }
    }

    /// Ends the connection in favour of another one. May be called from any thread.
    func giveWay() {
        let waiters = state.withLock { state in
            state.machine.stop()
            state.isOver = true
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Ends the connection. The peer sees the end of the stream even if this object is still referenced.
    private func end() {
        let (watch, waiters) = state.withLock { state in
            state.machine.stop()
            state.isOver = true
            state.silenceTimer?.disarm()
            return (state.watch.take(), state.takeWaiters())
        }
        watch?.cancel()
        shutdown(socket.rawValue, Int32(SHUT_RDWR))
        for waiter in waiters { waiter.resume() }
    }

    // MARK: Serving

    private func serve() async {
        await withTaskCancellationHandler {
            while true {
                await takeTurn()
                let action: ConnectionStateMachine.Action
                switch state.withLock({ $0.isOver ? nil : $0.remainder.take() }) {
                case .action(let next): action = next
                case .reply(let bytes, let sent):
                    try? await write(bytes, from: sent)
                    callEnded()
                    continue
                case nil: action = state.withLock { $0.machine.next() }
                }
                switch action {
                case .serve(let message):
                    await perform(message)
                    callEnded()
                case .refuse(let error):
                    try? await write(VarlinkReplyMessage(parameters: error.parameters, error: error.name))
                case .read:
                    await read()
                case .close:
                    return
                }
            }
        } onCancel: {
            end()
        }
    }

    /// Waits for a turn, unless the current turn still has time.
    func takeTurn() async {
        if let turn = state.withLock({ $0.turn }), !turn.isOver { return }
        endTurn()
        let turn = await turns.begin(peer.user)
        state.withLock { $0.turn = turn }
    }

    /// Ends the turn before a wait, so that others can use the loop.
    private func endTurn() {
        if let turn = state.withLock({ $0.turn.take() }) { turns.end(turn) }
    }

    private func perform(_ message: VarlinkCallMessage) async {
        let call = VarlinkCall(
            method: message.method, parameters: message.parameters, acceptsMore: message.more,
            isOneway: message.oneway, peer: peer, connection: self)
        // A cancelled call has no reply: its client went away.
        guard let reply = await router.answer(call, on: loop), !message.oneway else { return }
        state.withLock { $0.machine.answers() }
        try? await write(consume reply)
    }

    /// Notes that the call in progress only waits for events from now on.
    func callFollows() {
        state.withLock { $0.machine.follows(at: .now) }
    }

    func callEnded() {
        let now = ContinuousClock.Instant.now
        let timer = state.withLock { state -> LoopTimer? in
            state.machine.callEnded(at: now)
            guard !state.isSilenceTimerArmed, !state.isOver else { return nil }
            state.isSilenceTimerArmed = true
            return state.silenceTimer
        }
        timer?.arm(at: now + silence)
    }

    /// Waits until the socket is readable and reads once.
    private func read() async {
        while true {
            // A read that did not fill its buffer took all bytes, so a further read would fail with EAGAIN.
            if !state.withLock({ $0.mayHaveMore }) {
                endTurn()
                if await waitUntilReadable() { return }
                // The loop's handler has read.
                if state.withLock({ $0.remainder != nil }) { return }
            }
            switch receive() {
            case EAGAIN:
                let isGone = state.withLock { state in
                    state.mayHaveMore = false
                    if state.watch == nil { state.machine.receivedEnd() }
                    return state.watch == nil
                }
                if isGone { return }
            case EINTR: continue
            case 0: return
            default:
                // A reset counts as the end of the input: no client is left that could get an error.
                state.withLock { state in
                    state.machine.receivedEnd()
                    state.set(state.interest.subtracting(.read))
                }
                return
            }
        }
    }

    /// Returns 0 if bytes were read, otherwise an error number; ECONNRESET also stands for the end of the stream.
    func receive() -> Int32 {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.readSize) { buffer in
            let count = recv(socket.rawValue, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { return count == 0 ? ECONNRESET : errno }
            state.withLock { state in
                state.machine.received(buffer[..<count])
                state.mayHaveMore = count == buffer.count
            }
            return 0
        }
    }

    /// Returns false when the socket is readable, and true if the connection is over.
    private func waitUntilReadable() async -> Bool {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                // After a hang-up the socket is not watched any more. A read does not block then: it returns the rest,
                // then the end.
                if state.isOver || state.watch == nil { return true }
                state.reader = continuation
                state.set(state.interest.union(.read))
                return false
            }
            if isOver { continuation.resume() }
        }
        return state.withLock { $0.isOver }
    }

    /// Writes a message as fast as the client reads. While it waits, only one copy of the bytes is in memory.
    func write(_ message: consuming VarlinkReplyMessage) async throws(CancellationError) {
        loop.nameJob("control reply")
        try await write((consume message).encoded, from: 0)
    }

    /// Writes bytes from an index on.
    private func write(_ bytes: [UInt8], from start: Int) async throws(CancellationError) {
        state.withLock { state in
            precondition(!state.isWriting, "two replies at the same time")  // safe: a handler's programming error
            state.isWriting = true
        }
        defer { state.withLock { $0.isWriting = false } }
        var sent = start
        var hasStalled = false
        while sent < bytes.count {
            if state.withLock({ $0.isOver }) { throw CancellationError() }
            let count = send(bytes, from: sent)
            if count >= 0 {
                sent += count
                if hasStalled { state.withLock { $0.machine.writeWentOn() } }
                hasStalled = false
            } else if errno == EAGAIN {
                hasStalled = true
                endTurn()
                watchStalledWrite(leaving: bytes.count - sent)
                stalled()
                await waitUntilWritable()
            } else if errno != EINTR {
                throw CancellationError()
            }
        }
    }

    /// Sends as many bytes as the kernel takes; returns their number, or a negative number.
    func send(_ bytes: [UInt8], from start: Int) -> Int {
        bytes.withUnsafeBytes { bytes in
            Glibc.send(
                socket.rawValue, bytes.baseAddress?.advanced(by: start), bytes.count - start,
                Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        }
    }

    /// Starts the timer that ends the connection if the client reads nothing.
    private func watchStalledWrite(leaving bytes: Int) {
        let (instant, timer) = state.withLock { state -> (ContinuousClock.Instant, LoopTimer?) in
            let instant = state.machine.writeStalled(leaving: bytes, at: .now)
            guard !state.isSilenceTimerArmed, !state.isOver else { return (instant, nil) }
            state.isSilenceTimerArmed = true
            return (instant, state.silenceTimer)
        }
        timer?.arm(at: instant)
    }

    private func waitUntilWritable() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.isOver { return true }
                state.writer = continuation
                state.set(state.interest.union(.write))
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}
