import FreshetEventLoop
import Glibc
import Synchronization

/// A server's side of one connection: performs what ``ConnectionStateMachine`` says.
///
/// A task serves it; the loop's handlers wake that task and never do its work.
final class VarlinkConnection: Sendable {
    /// Bytes read at once: enough for any usual call, and for a batch of them.
    static let readSize = 8_192

    private struct State {
        var machine: ConnectionStateMachine
        var watch: DescriptorWatch?
        var hasBegun = false
        var interest: Interest = []
        /// The serving task, while it waits for something to read, or for room to write.
        var reader: CheckedContinuation<Void, Never>?
        var writer: CheckedContinuation<Void, Never>?
        /// The parent of the serving task, which ends it.
        var overseer: CheckedContinuation<Void, Never>?
        var isOver = false
        var mayHaveMore = false
        var isWriting = false
        /// Nil: the connection waits, and its next work is a new turn.
        var turn: FairScheduler.Turn?
        var silenceTimer: LoopTimer?
        var isSilenceTimerArmed = false

        /// Changes what the socket is watched for.
        mutating func set(_ interest: Interest) {
            guard interest != self.interest else { return }
            self.interest = interest
            watch?.change(to: interest)
        }

        /// Ends all waiting; what waited finds out why.
        mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
            [reader.take(), writer.take(), overseer.take()].compactMap { $0 }
        }
    }

    let peer: VarlinkPeer
    private let socket: OwnedDescriptor
    private let loop: EventLoop
    private let router: VarlinkRouter
    private let turns: FairScheduler
    private let silence: Duration
    private let state: Mutex<State>

    init(
        _ socket: OwnedDescriptor, peer: VarlinkPeer, loop: EventLoop, router: VarlinkRouter,
        turns: FairScheduler, limits: VarlinkServer.Limits
    ) {
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

    /// Serves the client until it goes away, breaks the rules, is silent too long, or the task is cancelled.
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
                    if !state.isOver { state.overseer = continuation }
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

    /// Since when the server waits for the client; nil: it has a call under way, or is over.
    var waitingSince: ContinuousClock.Instant? {
        state.withLock { state in
            // While it does not wait, what came is being looked at.
            state.isOver || (state.reader == nil && state.writer == nil) ? nil : state.machine.waitingSince
        }
    }

    /// The client has gone, whether or not its last calls have had their turn.
    var isAbandoned: Bool { state.withLock { $0.isOver || ($0.hasBegun && $0.watch == nil) } }

    /// Gives its place to another. From any thread.
    func giveWay() {
        let waiters = state.withLock { state in
            state.machine.stop()
            state.isOver = true
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Ends everything; the peer sees the end of the stream, whoever still holds this object.
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
                switch state.withLock({ $0.machine.next() }) {
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

    /// Waits for a turn, unless the present one goes on.
    private func takeTurn() async {
        if let turn = state.withLock({ $0.turn }), !turn.isOver { return }
        endTurn()
        let turn = await turns.begin(peer.user)
        state.withLock { $0.turn = turn }
    }

    /// Others have the loop while this connection waits.
    private func endTurn() {
        if let turn = state.withLock({ $0.turn.take() }) { turns.end(turn) }
    }

    private func perform(_ message: VarlinkCallMessage) async {
        let call = VarlinkCall(
            method: message.method, parameters: message.parameters, wantsMore: message.more,
            isOneway: message.oneway, peer: peer, pause: { [weak self] in await self?.takeTurn() }
        ) { [weak self] parameters throws(CancellationError) in
            guard let self else { throw CancellationError() }
            try await self.write(VarlinkReplyMessage(parameters: parameters, continues: true))
        }
        let reply = await router.answer(call, on: loop)
        // A client that went away hears nothing.
        guard !message.oneway, let reply else { return }
        state.withLock { $0.machine.answers() }
        try? await write(reply)
    }

    private func callEnded() {
        let now = ContinuousClock.Instant.now
        let timer = state.withLock { state -> LoopTimer? in
            state.machine.callEnded(at: now)
            guard !state.isSilenceTimerArmed, !state.isOver else { return nil }
            state.isSilenceTimerArmed = true
            return state.silenceTimer
        }
        timer?.arm(at: now + silence)
    }

    /// Reads once, after waiting until there is something to read.
    private func read() async {
        while true {
            // After a read that did not fill its buffer there was nothing more: the kernel need not be asked.
            if !state.withLock({ $0.mayHaveMore }) {
                endTurn()
                if await waitUntilReadable() { return }
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
                // A reset is an end like another: there is nobody to tell.
                state.withLock { state in
                    state.machine.receivedEnd()
                    state.set(state.interest.subtracting(.read))
                }
                return
            }
        }
    }

    /// Returns 0 if bytes came, else an error number; ECONNRESET stands for the end of the stream too.
    private func receive() -> Int32 {
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

    /// Returns true if the connection is over instead.
    private func waitUntilReadable() async -> Bool {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                // A client that hung up is watched no more. A read does not block then: it gives the rest, and the end.
                if state.isOver || state.watch == nil { return true }
                state.reader = continuation
                state.set(state.interest.union(.read))
                return false
            }
            if isOver { continuation.resume() }
        }
        return state.withLock { $0.isOver }
    }

    /// Writes a message, as fast as the client reads.
    private func write(_ message: VarlinkReplyMessage) async throws(CancellationError) {
        loop.nameJob("control reply")
        let bytes = message.encoded
        state.withLock { state in
            precondition(!state.isWriting, "two replies at once")  // safe: a handler's programming error
            state.isWriting = true
        }
        defer { state.withLock { $0.isWriting = false } }
        var sent = 0
        var hasStalled = false
        while sent < bytes.count {
            if state.withLock({ $0.isOver }) { throw CancellationError() }
            let count = bytes.withUnsafeBytes { bytes in
                send(
                    socket.rawValue, bytes.baseAddress?.advanced(by: sent), bytes.count - sent,
                    Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            }
            if count >= 0 {
                sent += count
                if hasStalled { state.withLock { $0.machine.writeWentOn() } }
                hasStalled = false
            } else if errno == EAGAIN {
                hasStalled = true
                endTurn()
                lookAfterReader()
                await waitUntilWritable()
            } else if errno != EINTR {
                throw CancellationError()
            }
        }
    }

    /// The client does not read: if it goes on like that, the connection ends.
    private func lookAfterReader() {
        let (instant, timer) = state.withLock { state -> (ContinuousClock.Instant?, LoopTimer?) in
            let instant = state.machine.writeStalled(at: .now)
            guard instant != nil, !state.isSilenceTimerArmed, !state.isOver else { return (nil, nil) }
            state.isSilenceTimerArmed = true
            return (instant, state.silenceTimer)
        }
        if let instant { timer?.arm(at: instant) }
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

    // MARK: The loop's handlers

    private func ready(_ readiness: Readiness) {
        var waiters: [CheckedContinuation<Void, Never>] = []
        let watch = state.withLock { state -> DescriptorWatch? in
            if readiness.contains(.write) || readiness.contains(.error), let writer = state.writer.take() {
                waiters.append(writer)
                state.set(state.interest.subtracting(.write))
            }
            if state.interest.contains(.read) {
                // A hang-up may be of one direction only; reading to the end tells. During a call nothing is read: what
                // the client sends meanwhile stays in the kernel, and it can be heard going away.
                if let reader = state.reader.take() {
                    waiters.append(reader)
                } else {
                    state.set(state.interest.subtracting(.read))
                }
                return nil
            }
            guard !readiness.isDisjoint(with: [.hangup, .error]) else { return nil }
            // It would be said again and again.
            defer { state.watch = nil }
            if state.machine.hangUp() == .cancel {
                state.isOver = true
                waiters += state.takeWaiters()
            } else {
                // Who reads on meets the end, who writes an error: neither waits again.
                waiters += [state.reader.take(), state.writer.take()].compactMap { $0 }
            }
            return state.watch
        }
        watch?.cancel()
        for waiter in waiters { waiter.resume() }
    }

    private func silenceTimerExpired() {
        let now = ContinuousClock.Instant.now
        let (action, timer, waiters) = state.withLock { state in
            let action = state.machine.silenceTimerExpired(at: now)
            if action == .close { state.isOver = true }
            if case .lookAgain = action {} else { state.isSilenceTimerArmed = false }
            return (action, state.silenceTimer, action == .close ? state.takeWaiters() : [])
        }
        if case .lookAgain(let instant) = action { timer?.arm(at: instant) }
        for waiter in waiters { waiter.resume() }
    }
}
