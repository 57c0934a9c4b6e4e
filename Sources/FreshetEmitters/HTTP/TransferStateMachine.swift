import FreshetPipelines

/// What becomes of one request to a source: begin, follow redirects, end once. Cancellation and completion race; the
/// first of them that arrives decides, and the other finds the end.
///
/// Redirects are followed here and not by libcurl, which sends most header fields that a program sets along to any host.
struct TransferStateMachine {
    /// One request on the way to the answer.
    struct Hop: Hashable {
        var location: Location
        /// Whether the configuration's header fields and the URL's user information go along: until a redirect leaves
        /// the configured origin. A way back does not bring them back, since it was not the origin that chose it.
        var carriesCredentials: Bool
        /// It is a POST with the configured body; else a GET.
        var sendsBody = false
        /// A redirect has led there.
        var isRedirected = false
        /// Whether it asks for content other than the copy at hand, if there is one. Validators are of the URL that is
        /// configured: its redirects may lead elsewhere the next time, where the same entity tag is other content's.
        var isConditional: Bool
        /// No connection that is there already is used.
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
        /// The origin pointed elsewhere; the text of its `Location` field.
        case redirect(status: Int, to: String)
        /// The connection broke when so many bytes of a body were there whose rest can be asked for.
        case broken(at: Int)
        /// Nothing was asked: the connection that libcurl took had something to read before the request was written.
        case connectionUnusable
        /// The origin rejected the request, perhaps for its conditions.
        case conditionRejected
        /// An answer or a failure that is final.
        case final
    }

    enum StartAction: Hashable {
        case request(Hop)
        /// It was cancelled before it began.
        case answerCancelled
    }

    enum CancelAction: Hashable {
        /// Take the request away, which closes its connection, then answer.
        case abandonAndAnswerCancelled
        case none
    }

    enum EndAction: Hashable {
        case request(Hop)
        /// Ask the hop's URL for the rest of the body.
        case requestRest(Hop)
        /// The hop's own outcome is the transfer's.
        case answer
        case fail(RunFailure)
    }

    /// More redirects than this in a row are taken for a loop.
    static let maxRedirects = 10
    /// So many times the rest of a body is asked for, and only while each time brings more of it.
    static let maxResumptions = 5

    private enum State {
        case idle
        case requesting(Hop, redirects: Int, Resumptions)
        case cancelledBeforeStart
        case ended
    }

    private struct Resumptions {
        var count = 0
        /// Bytes that were there at the last of them.
        var offset = 0
    }

    private var state = State.idle
    private let first: Hop
    private let staysAtOrigin: Bool
    private let redirects: HTTPSource.Redirects

    /// - Parameters:
    ///   - sendsBody: the first request is a POST.
    ///   - staysAtOrigin: the origin is not reached by its name, so that no other is either.
    ///   - redirects: those that are followed.
    init(
        _ location: Location, sendsBody: Bool = false, staysAtOrigin: Bool = false,
        redirects: HTTPSource.Redirects = .any
    ) {
        self.staysAtOrigin = staysAtOrigin
        self.redirects = redirects
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
        case .cancelledBeforeStart, .ended:  // the answer was quicker, or it is cancelled already
            return .none
        }
    }

    mutating func hopEnded(_ end: HopEnd) -> EndAction {
        guard case .requesting(let hop, let redirects, let resumptions) = state else {
            // safe: our own programming error, out of reach of what an origin sends. A hop ends once: libcurl reports each
            // transfer once, and who takes it from its pool tells it here in the same turn of the loop. A request that is
            // cancelled is taken out of its pool in the turn in which it is cancelled, and is not reported any more.
            preconditionFailure("a hop ended that is not under way, in \(state)")
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
                .refused, "more than \(Self.maxRedirects) redirects, the last from \(host); check the source's URL")
        }
        guard let next = hop.location.resolving(reference) else {
            throw RunFailure(
                .refused, "\(host) answered \(status) and redirects to what is no http or https URL; not followed")
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
                "\(host) redirects to \(next.origin.hostForPeople); not followed (source.redirects: \(self.redirects.rawValue))"
            )
        }
        // A copy that was to come authenticated and unread by others must not come in the clear.
        guard hop.location.origin.scheme != "https" || next.origin.scheme == "https" else {
            throw RunFailure(
                .refused, "\(host) redirects from https to http at \(next.origin.hostForPeople); not followed")
        }
        let isOwn = hop.carriesCredentials && next.origin == first.location.origin
        guard isOwn || !staysAtOrigin else {
            throw RunFailure(
                .refused,
                "\(host) is asked through a socket and redirects to \(next.origin.hostForPeople); not followed")
        }
        // 307 and 308 keep the method. Of 301 and 302 RFC 9110, 15.4 leaves the choice: a GET, as with 303, which is
        // what browsers do.
        let sendsBody = hop.sendsBody && (status == 307 || status == 308)
        guard isOwn || !sendsBody else {
            throw RunFailure(
                .refused,
                "\(host) redirects a POST to \(next.origin.hostForPeople), and its body goes to its own origin only; "
                    + "not followed; check the source's URL")
        }
        return Hop(location: next, carriesCredentials: isOwn, sendsBody: sendsBody, isRedirected: true)
    }
}
