/// One connection of a server: which bytes are a call, whose turn it is, and when it is over.
///
/// Calls are served one at a time, in their order. A client that closed only its sending side is answered to the last
/// call; one that is gone altogether has its call cancelled and no further one begun, except those that want no answer.
struct ConnectionStateMachine {
    typealias Instant = ContinuousClock.Instant

    enum Action: Equatable {
        /// Begin this call; ``callEnded(at:)`` follows.
        case serve(VarlinkCallMessage)
        /// Answer with this error, then ask again.
        case refuse(VarlinkErrorReply)
        /// Wait for bytes, the end of input, or the client's going away.
        case read
        /// Close the connection.
        case close
    }

    enum HangUpAction: Equatable {
        /// Cancel the call under way and close.
        case cancel
        /// What was received is still to be looked at.
        case readOn
    }

    enum SilenceAction: Equatable {
        case close
        /// It was not silent that long; look again then.
        case lookAgain(at: Instant)
        /// A call is under way: look again some time after it has ended.
        case none
    }

    private enum Phase {
        case reading
        case calling(oneway: Bool)
        case closed
    }

    private var phase = Phase.reading
    private var framer: VarlinkFramer
    private var inputEnded = false
    private var isGone = false
    private let silence: Duration
    private var lastCall: Instant

    init(messageLimit: Int, silence: Duration, now: Instant) {
        framer = VarlinkFramer(limit: messageLimit)
        self.silence = silence
        lastCall = now
    }

    var isCalling: Bool {
        if case .calling = phase { true } else { false }
    }

    /// No more bytes will come, so none need to be waited for.
    var hasInputEnded: Bool { inputEnded }

    mutating func received(_ bytes: some Collection<UInt8>) {
        framer.append(bytes)
    }

    /// The client closed its sending side, or reading failed.
    mutating func receivedEnd() {
        inputEnded = true
    }

    /// What to do while no call is under way.
    mutating func next() -> Action {
        switch phase {
        case .closed: return .close
        case .calling: preconditionFailure("asked for a call during one")  // safe: the server's programming error
        case .reading: break
        }
        while true {
            let message: [UInt8]?
            do {
                message = try framer.next()
            } catch {
                return close()
            }
            guard let message else {
                // What is left of a message without its end means nothing.
                return inputEnded ? close() : .read
            }
            do {
                let call = try VarlinkCallMessage(parsing: message)
                // Nobody is there to hear the answer.
                if isGone && !call.oneway { continue }
                if call.upgrade { return .refuse(.methodNotImplemented(call.method)) }
                phase = .calling(oneway: call.oneway)
                return .serve(call)
            } catch .field(let name) {
                return .refuse(.invalidParameter(name))
            } catch {
                // Not JSON: whoever sends this does not speak Varlink.
                return close()
            }
        }
    }

    mutating func callEnded(at now: Instant) {
        guard case .calling = phase else { return }  // closed in the meantime
        phase = .reading
        lastCall = now
    }

    /// The client is gone: both directions are closed.
    mutating func hangUp() -> HangUpAction {
        isGone = true
        switch phase {
        case .calling(oneway: false):
            phase = .closed
            return .cancel
        case .calling(oneway: true), .reading, .closed: return .readOn
        }
    }

    /// The server closes it.
    mutating func stop() {
        phase = .closed
    }

    /// The time set for looking after silent clients has come.
    mutating func silenceTimerExpired(at now: Instant) -> SilenceAction {
        guard case .reading = phase else { return .none }
        guard now >= lastCall + silence else { return .lookAgain(at: lastCall + silence) }
        phase = .closed
        return .close
    }

    private mutating func close() -> Action {
        phase = .closed
        return .close
    }
}
