import FreshetModel
import FreshetPipelines

/// The state of one request to a source: it begins, follows redirects, and ends once. Cancellation and completion race:
/// the first of them decides, and the other has no effect.
///
/// Redirects are followed here and not by libcurl, because libcurl sends most of the header fields to any host.
struct TransferStateMachine {
    /// One HTTP request of the transfer.
    struct Hop: Hashable {
        var location: Location
        /// Whether the hop sends the configuration's header fields and the URL's user information. It does so until a
        /// redirect leaves the configured origin. A redirect back does not restore them, because another origin chose
        /// it.
        var carriesCredentials: Bool
        /// Whether the hop is a POST with the configured body; otherwise it is a GET.
        var sendsBody = false
        /// Whether a redirect has led to this hop.
        var isRedirected = false
        /// Whether the hop sends the validators of the present copy. Validators belong to the configured URL: its
        /// redirects may lead elsewhere next time, where the same entity tag may belong to other content.
        var isConditional: Bool
        /// Whether the hop must use a new connection.
        var wantsNewConnection = false

        init(location: Location, carriesCredentials: Bool, sendsBody: Bool = false, isRedirected: Bool = false) {
            self.location = location
            self.carriesCredentials = carriesCredentials
            self.sendsBody = sendsBody
            self.isRedirected = isRedirected
            isConditional = !isRedirected
        }
    }

    /// How a hop ended, if it was not cancelled.
    enum HopEnd: Hashable {
        /// The origin redirected the request; the text of its `Location` field.
        case redirect(status: Int, to: String)
        /// The connection broke after so many bytes of a body whose rest can be requested.
        case broken(at: Int)
        /// The request was not sent: the reused connection had data to read before the request was written.
        case connectionUnusable
        /// The origin rejected the request, perhaps for its conditions, or answered 304 for other content.
        case conditionRejected
        /// The received data is not certainly the rest of the body.
        case restRejected
        /// An answer or a failure that is final.
        case final
    }

    enum StartAction: Hashable {
        case request(Hop)
        /// The transfer was cancelled before it began.
        case answerCancelled
    }

    enum CancelAction: Hashable {
        /// Remove the request, which closes its connection, then return the cancellation.
        case abandonAndAnswerCancelled
        case none
    }

    enum EndAction: Hashable {
        case request(Hop)
        /// Request the rest of the body from the hop's URL.
        case requestRest(Hop)
        /// The hop's outcome is the outcome of the transfer.
        case answer
        case fail(RunFailure)
    }

    /// The most redirects in a row; more are treated as a loop.
    static let maxRedirects = 10
    /// The most requests for the rest of a body. Each of them must bring more of the body.
    static let maxResumptions = 5

    private enum State {
        case idle
        case requesting(Hop, redirects: Int, Resumptions)
        case cancelledBeforeStart
        case ended
    }

    private struct Resumptions {
        var count = 0
        /// The number of bytes of the body at the last request for the rest.
        var offset = 0
    }

    private var state = State.idle
    private let first: Hop
    private let staysAtOrigin: Bool
    private let redirects: HTTPSource.Redirects
    private let role: RequestRole

    /// - Parameters:
    ///   - sendsBody: whether the first request is a POST.
    ///   - staysAtOrigin: whether redirects to other origins fail, because the origin is reached through a socket.
    ///   - redirects: which redirects are followed.
    ///   - role: the role of the request.
    init(
        _ location: Location, sendsBody: Bool = false, staysAtOrigin: Bool = false,
        redirects: HTTPSource.Redirects = .any, role: RequestRole = .source
    ) {
        self.staysAtOrigin = staysAtOrigin
        self.redirects = redirects
        self.role = role
        first = Hop(location: location, carriesCredentials: true, sendsBody: sendsBody)
    }

    mutating func start() -> StartAction {
        switch state {
        case .idle:
            state = .requesting(first, redirects: 0, Resumptions())
            return .request(first)
        case .cancelledBeforeStart:
            state = .ended
            return .answerCancelled
        case .requesting, .ended:
            preconditionFailure("a transfer starts once, not in \(state)")  // safe: our own programming error
        }
    }

    mutating func cancel() -> CancelAction {
        switch state {
        case .idle:
            state = .cancelledBeforeStart
            return .none
        case .requesting:
            state = .ended
            return .abandonAndAnswerCancelled
        case .cancelledBeforeStart, .ended:  // the answer came first, or the transfer is already cancelled
            return .none
        }
    }

    mutating func hopEnded(_ end: HopEnd) -> EndAction {
        guard case .requesting(let hop, let redirects, let resumptions) = state else {
            // safe: only a programming error leads here, no data of an origin. A hop ends once: libcurl reports each
            // transfer once, and the client calls this in the same turn of the loop in which it removes the transfer
            // from its pool. A cancelled request is removed from its pool in the turn in which it is cancelled, and
            // libcurl does not report it afterwards.
            preconditionFailure("a hop ended that is not in progress, in \(state)")
        }
        switch end {
        case .final:
            state = .ended
            return .answer
        case .connectionUnusable where !hop.wantsNewConnection:
            var next = hop
            next.wantsNewConnection = true
            state = .requesting(next, redirects: redirects, resumptions)
            return .request(next)
        case .conditionRejected where hop.isConditional:
            var next = hop
            next.isConditional = false
            state = .requesting(next, redirects: redirects, Resumptions(count: resumptions.count, offset: 0))
            return .request(next)
        case .connectionUnusable, .conditionRejected:
            state = .ended
            return .answer
        case .restRejected where (1...Self.maxResumptions).contains(resumptions.count):
            // The whole body is requested once, without further continuations.
            state = .requesting(
                hop, redirects: redirects, Resumptions(count: Self.maxResumptions + 1, offset: 0))
            return .request(hop)
        case .restRejected:
            state = .ended
            return .answer
        case .broken(let offset):
            guard resumptions.count < Self.maxResumptions, offset > resumptions.offset else {
                state = .ended
                return .answer
            }
            state = .requesting(
                hop, redirects: redirects, Resumptions(count: resumptions.count + 1, offset: offset))
            return .requestRest(hop)
        case .redirect(let status, let reference):
            do throws(RunFailure) {
                let next = try follow(hop, status: status, to: reference, redirects: redirects)
                state = .requesting(
                    next, redirects: redirects + 1, Resumptions(count: resumptions.count, offset: 0))
                return .request(next)
            } catch {
                state = .ended
                return .fail(error)
            }
        }
    }

    private func follow(
        _ hop: Hop, status: Int, to reference: String, redirects: Int
    ) throws(RunFailure) -> Hop {
        let host = hop.location.origin.hostForPeople
        guard redirects < Self.maxRedirects else {
            throw RunFailure(
                .refused, "more than \(Self.maxRedirects) redirects, the last from \(host); check \(role.url)")
        }
        guard let next = hop.location.resolving(reference) else {
            throw RunFailure(
                .refused, "\(host) answered \(status) and redirects to a URL that is not http or https; not followed")
        }
        let isAllowed =
            switch self.redirects {
            case .any: true
            case .sameOrigin: next.origin == first.location.origin
            case .none: false
            }
        guard isAllowed else {
            throw RunFailure(
                .refused,
                "\(host) redirects to \(next.origin.hostForPeople); "
                    + role.noteOnRedirect(self.redirects.rawValue))
        }
        // Content that is configured to be fetched authenticated and encrypted must not be fetched unencrypted.
        guard hop.location.origin.scheme != "https" || next.origin.scheme == "https" else {
            throw RunFailure(
                .refused, "\(host) redirects from https to http at \(next.origin.hostForPeople); not followed")
        }
        let isOwn = hop.carriesCredentials && next.origin == first.location.origin
        guard isOwn || !staysAtOrigin else {
            throw RunFailure(
                .refused,
                "\(host) is reached through a socket and redirects to \(next.origin.hostForPeople); not followed")
        }
        // 307 and 308 keep the method. For 301 and 302, RFC 9110, 15.4 allows both methods: a GET is used, as with 303
        // and as browsers do.
        let sendsBody = hop.sendsBody && (status == 307 || status == 308)
        guard isOwn || !sendsBody else {
            throw RunFailure(
                .refused,
                "\(host) redirects a POST to \(next.origin.hostForPeople), but the body is only sent to the "
                    + "configured origin; not followed; check \(role.url)")
        }
        return Hop(location: next, carriesCredentials: isOwn, sendsBody: sendsBody, isRedirected: true)
    }
}
