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
        /// The last reply of a call is on its way.
        case answering
        case closed
    }

    private var phase = Phase.reading
    private var framer: VarlinkFramer
    private var inputEnded = false
    private var isGone = false
    private let silence: Duration
    private var lastCall: Instant
    /// Since when the client has taken nothing of a reply that waits for it; nil: none waits.
    private var stalled: Instant?

    init(messageLimit: Int, silence: Duration, now: Instant) {
        framer = VarlinkFramer(limit: messageLimit)
        self.silence = silence
        lastCall = now
    }

    var isCalling: Bool {
        switch phase {
        case .calling, .answering: true
        case .reading, .closed: false
        }
    }

    /// Since when the server waits for the client: for its next call, or for it to read. Nil: it does not, or there is
    /// no connection any more.
    var waitingSince: Instant? {
        switch phase {
        case .reading: stalled ?? lastCall
        case .calling, .answering: stalled
        case .closed: nil
        }
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
        case .calling, .answering:
            preconditionFailure("asked for a call during one")  // safe: the server's programming error
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
                // Neither JSON nor Varlink; to a `oneway` call no error may be sent.
                return close()
            }
        }
    }

    /// The call's handler has returned; its reply is to be written.
    mutating func answers() {
        guard case .calling = phase else { return }  // closed in the meantime
        phase = .answering
    }

    /// The kernel takes no more of a reply until the client reads.
    ///
    /// Returns when to look after a silent client, if that may be now: a stream is only held back, for as long as its
    /// client likes, but a reply that nobody fetches is not kept for ever.
    mutating func writeStalled(at now: Instant) -> Instant? {
        let since = stalled ?? now
        stalled = since
        if case .answering = phase { return since + silence }
        return nil
    }

    /// The client read: the kernel took more of a reply.
    mutating func writeWentOn() {
        stalled = nil
    }

    mutating func callEnded(at now: Instant) {
        guard isCalling else { return }  // closed in the meantime
        phase = .reading
        stalled = nil
        lastCall = now
    }

    /// The client is gone: both directions are closed.
    mutating func hangUp() -> HangUpAction {
        isGone = true
        switch phase {
        case .calling(oneway: false), .answering:
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
        let since: Instant
        switch phase {
        case .reading: since = lastCall
        case .answering: since = stalled ?? now
        case .calling, .closed: return .none
        }
        guard now >= since + silence else { return .lookAgain(at: since + silence) }
        phase = .closed
        return .close
    }

    private mutating func close() -> Action {
        phase = .closed
        return .close
    }
}
