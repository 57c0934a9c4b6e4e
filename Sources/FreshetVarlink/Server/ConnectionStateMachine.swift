/// The state of one connection of a server: finds calls in the received bytes, and decides what to do next and when to
/// close.
///
/// Calls are served one at a time, in their order. A client that closed only its sending side still gets the replies to
/// all its calls. If a client is gone, its call in progress is cancelled, and of its further calls only those that take
/// no reply (`oneway`) are served.
struct ConnectionStateMachine {
    typealias Instant = ContinuousClock.Instant

    enum Action: Equatable {
        /// Begin this call; then call ``callEnded(at:)``.
        case serve(VarlinkCallMessage)
        /// Answer with this error, then call ``next()`` again.
        case refuse(VarlinkErrorReply)
        /// Wait for bytes, for the end of the input, or until the client goes away.
        case read
        /// Close the connection.
        case close
    }

    enum HangUpAction: Equatable {
        /// Cancel the call in progress and close.
        case cancel
        /// Go on: received bytes have not been processed yet.
        case readOn
    }

    enum SilenceAction: Equatable {
        case close
        /// The client was not silent for long enough; check again at this instant.
        case checkAgain(at: Instant)
        /// A call is in progress, or the connection is closed; check again after the call has ended.
        case none
    }

    private enum Phase: Equatable {
        case reading
        case calling(oneway: Bool)
        /// The last reply of a call is being written.
        case answering
        case closed
    }

    private var phase = Phase.reading
    private var framer: VarlinkFramer
    /// The last call, if it is short: programs that poll send the same bytes again, and parsing them takes most of the
    /// time of a cheap call.
    private var last: (bytes: [UInt8], call: VarlinkCallMessage)?
    private var inputEnded = false
    private var isGone = false
    private let silence: Duration
    private var lastCall: Instant
    /// Since when the client has read nothing of a waiting reply; nil: no reply waits.
    private var stalled: Instant?
    /// The bytes of the reply that waits until the client reads.
    private(set) var pendingOutput = 0
    /// Since when the call in progress only waits for events; nil: it works, or no call is in progress.
    private var following: Instant?

    /// The most bytes of a call that is kept for a comparison with the next one.
    static let comparedBytes = 512

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

    /// Since when the server waits for the next call of the client, or until the client reads. Nil: the server does not
    /// wait for the client, or the connection is closed.
    var waitingSince: Instant? {
        switch phase {
        case .reading: stalled ?? lastCall
        case .calling, .answering: stalled
        case .closed: nil
        }
    }

    /// Since when the call in progress only waits for events.
    var followingSince: Instant? { isCalling ? following : nil }

    /// Marks the call in progress as one that only waits for events from now on, which may never arrive.
    mutating func follows(at now: Instant) {
        guard case .calling = phase else { return }  // closed in the meantime
        following = following ?? now
    }

    mutating func received(_ bytes: some Collection<UInt8>) {
        framer.append(bytes)
    }

    /// The client closed its sending side, or reading failed.
    mutating func receivedEnd() {
        inputEnded = true
    }

    /// The next action while no call is in progress.
    mutating func next() -> Action {
        switch phase {
        case .closed: return .close
        case .calling, .answering:
            preconditionFailure("next() during a call")  // safe: the server's programming error
        case .reading: break
        }
        while true {
            if let last, framer.take(last.bytes) {
                if isGone && !last.call.oneway { continue }
                phase = .calling(oneway: last.call.oneway)
                return .serve(last.call)
            }
            let message: [UInt8]?
            do {
                message = try framer.next()
            } catch {
                return close()
            }
            guard let message else {
                // An incomplete message at the end of the input is ignored.
                return inputEnded ? close() : .read
            }
            do {
                let call = try VarlinkCallMessage(parsing: message)
                // No client is left that could read the reply.
                if isGone && !call.oneway { continue }
                if call.upgrade { return .refuse(.methodNotImplemented(call.method)) }
                if message.count <= Self.comparedBytes { last = (message, call) }
                phase = .calling(oneway: call.oneway)
                return .serve(call)
            } catch .field(let name) {
                return .refuse(.invalidParameter(name))
            } catch {
                // The message is not JSON or not Varlink. An error reply is not possible: the call may be `oneway`.
                return close()
            }
        }
    }

    /// Notes that the call's handler has returned, and that the server writes its reply now.
    mutating func answers() {
        guard case .calling = phase else { return }  // closed in the meantime
        phase = .answering
    }

    /// Notes that the kernel takes no more bytes of a reply until the client reads.
    ///
    /// The limit holds for each reply, also in the middle of a stream: a reply that waits costs memory.
    ///
    /// - Parameter bytes: how many bytes of the reply are left.
    /// - Returns: when the connection closes if the client reads nothing until then.
    mutating func writeStalled(leaving bytes: Int, at now: Instant) -> Instant {
        let since = stalled ?? now
        if phase != .closed { (stalled, pendingOutput) = (since, bytes) }
        return since + silence
    }

    /// Notes that the client has read: the kernel took more bytes of a reply.
    mutating func writeWentOn() {
        (stalled, pendingOutput) = (nil, 0)
    }

    mutating func callEnded(at now: Instant) {
        guard isCalling else { return }  // closed in the meantime
        phase = .reading
        (stalled, pendingOutput, following) = (nil, 0, nil)
        lastCall = now
    }

    /// Notes that the client is gone: both directions are closed.
    mutating func hangUp() -> HangUpAction {
        isGone = true
        switch phase {
        case .calling(oneway: false), .answering:
            _ = close()
            return .cancel
        case .calling(oneway: true), .reading, .closed: return .readOn
        }
    }

    /// Closes the connection for the server.
    mutating func stop() {
        _ = close()
    }

    /// Checks whether the client has been silent for too long.
    mutating func silenceTimerExpired(at now: Instant) -> SilenceAction {
        let since: Instant
        switch phase {
        case .reading: since = lastCall
        case .answering: since = stalled ?? now
        case .calling:
            // The time of the handler is not limited, but the time until the client reads a reply is.
            guard let stalled else { return .none }
            since = stalled
        case .closed: return .none
        }
        guard now >= since + silence else { return .checkAgain(at: since + silence) }
        _ = close()
        return .close
    }

    private mutating func close() -> Action {
        phase = .closed
        pendingOutput = 0
        return .close
    }
}
