import FreshetEventLoop
import Synchronization

/// What the loop's thread does for a connection: it wakes the serving task, and answers calls of methods that do not wait.
extension VarlinkConnection {
    /// The socket is ready.
    func ready(_ readiness: Readiness) {
        if readiness == .read, answersImmediately() { return }
        var waiters: [CheckedContinuation<Void, Never>] = []
        let watch = state.withLock { state -> DescriptorWatch? in
            if readiness.contains(.write) || readiness.contains(.error), let writer = state.writer.take() {
                waiters.append(writer)
                state.set(state.interest.subtracting(.write))
            }
            if state.interest.contains(.read) {
                // A hang-up may concern one direction only; reading to the end shows this. During a call nothing is
                // read: what the client sends stays in the kernel, and the loop still reports when the client goes
                // away.
                if let reader = state.reader.take() {
                    waiters.append(reader)
                } else {
                    state.set(state.interest.subtracting(.read))
                }
                return nil
            }
            guard !readiness.isDisjoint(with: [.hangup, .error]) else { return nil }
            // The loop would report the hang-up again and again.
            defer { state.watch = nil }
            if state.machine.hangUp() == .cancel {
                state.isOver = true
                waiters += state.takeWaiters()
            } else {
                // A further read meets the end of the stream, and a further write fails: neither waits again.
                waiters += [state.reader.take(), state.writer.take()].compactMap { $0 }
            }
            return state.watch
        }
        watch?.cancel()
        for waiter in waiters { waiter.resume() }
    }

    /// Reads and answers calls without the serving task, if that task waits for calls and the user's turn begins now.
    ///
    /// - Returns: false if nothing was read; true if all that was read has been answered, or is left to the task.
    private func answersImmediately() -> Bool {
        let reader = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.isOver || state.watch == nil || !state.interest.contains(.read) ? nil : state.reader.take()
        }
        guard let reader else { return false }
        guard let turn = turns.beginImmediately(peer.user) else {
            waitsAgain(reader)
            return false
        }
        defer { turns.end(turn) }
        guard receive() == 0 else {
            waitsAgain(reader)
            return false
        }
        while let message = nextImmediateCall(turn) {
            let call = VarlinkCall(
                method: message.method, parameters: message.parameters, acceptsMore: message.more,
                isOneway: message.oneway, peer: peer, connection: nil)
            if let reply = router.answerImmediately(call), !message.oneway {
                let bytes = reply.encoded
                let sent = max(0, send(bytes, from: 0))
                if sent < bytes.count {
                    state.withLock { state in
                        state.machine.answers()
                        state.remainder = .reply(bytes, sent: sent)
                    }
                    break
                }
            }
            callEnded()
        }
        waitsAgain(reader)
        return true
    }

    /// The next call, if its method does not wait and the turn has time for it. Any other action is left to the serving
    /// task.
    private func nextImmediateCall(_ turn: FairScheduler.Turn) -> VarlinkCallMessage? {
        state.withLock { state in
            switch state.machine.next() {
            case .read where !state.mayHaveMore: return nil
            case .serve(let message) where !turn.isOver && router.isImmediate(message.method): return message
            case let action:
                state.remainder = .action(action)
                return nil
            }
        }
    }

    /// Makes the serving task wait for calls again, unless there is something for it to do.
    private func waitsAgain(_ reader: CheckedContinuation<Void, Never>) {
        let waits = state.withLock { state in
            let waits = state.remainder == nil && !state.isOver && state.watch != nil
            if waits { state.reader = reader }
            return waits
        }
        if !waits { reader.resume() }
    }

    /// The client has been silent, or has not read, for as long as it may; or the time has been extended since.
    func silenceTimerExpired() {
        let now = ContinuousClock.Instant.now
        let (action, timer, waiters) = state.withLock { state in
            let action = state.machine.silenceTimerExpired(at: now)
            if action == .close { state.isOver = true }
            if case .checkAgain = action {} else { state.isSilenceTimerArmed = false }
            return (action, state.silenceTimer, action == .close ? state.takeWaiters() : [])
        }
        if case .checkAgain(let instant) = action { timer?.arm(at: instant) }
        for waiter in waiters { waiter.resume() }
    }
}
