import CCurl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc

/// One request to a source with all its hops: libcurl's handle and callbacks, and the task that waits for more of the
/// body or for the end.
///
/// Not `Sendable`: it belongs to its ``HTTPClient`` and is used on the loop's thread only, also by libcurl's callbacks.
final class HTTPExchange {
    /// What happens with the body of a hop's answer.
    private enum BodyUse {
        /// No piece has arrived.
        case undecided
        case kept
        case skipped
    }

    /// The most bytes of an unused body that are read, so that its connection can be reused.
    static let ignoredBodyLimit = 64 << 10
    /// The most bytes of the body that are read if only the status is needed.
    static let statusBodyLimit = 4 << 10
    /// The most `Link` fields of an answer: one of them has the next page, a few others are usual.
    static let linkLimit = 16

    /// The handle of the present hop: each hop has a new handle.
    private(set) var easy: EasyHandle
    let request: HTTPRequest
    /// The limits and callbacks of the request.
    let fetch: FetchRequest
    let body: BodyReceiver

    var machine: TransferStateMachine
    /// Set while the task waits for the next piece of the body or for the end.
    private var waiter: CheckedContinuation<Void, Never>?
    /// Nil while the request is in progress.
    var result: Result<FetchResult, FetchError>?
    /// The serial number of the pool of the present hop.
    var pool: UInt64 = 0
    /// The sockets of the present hop's pool.
    var sockets: ConnectionSockets?
    /// The limit of the calls of libcurl for the present hop's pool.
    var calls: CallLimit?
    /// The client's limiter of lookups.
    var lookups: LookupLimiter?

    private(set) var hop: TransferStateMachine.Hop?
    /// The host whose lookup libcurl has begun for this hop.
    private var lookup: String?
    private var bodyUse = BodyUse.undecided
    private var stop: TransferStop?
    /// The head of the hop's response, as far as it was received.
    private var head = ResponseHead()
    /// The body whose rest the hop requests; nil if the hop requests the whole body.
    private var partial: PartialBody?
    /// The number of bytes of the body before this hop.
    private var offset = 0
    private var resumptions = 0
    private var reach = RedirectReach()

    init(_ easy: EasyHandle, _ request: HTTPRequest, for fetch: FetchRequest) {
        self.easy = easy
        self.request = request
        self.fetch = fetch
        body = BodyReceiver(maxBytes: fetch.maxBytes, handsOn: fetch.bodyStore != nil, progress: fetch.progress)
        let source = request.source
        machine = TransferStateMachine(
            request.location, sendsBody: source.method != .get, staysAtOrigin: source.unixSocket != nil,
            redirects: source.redirects, role: request.role)
        configure()
    }

    // MARK: The request

    /// Sets the options and the callbacks that are the same for all hops.
    private func configure() {
        request.configure(easy)
        freshet_curl_set_pointer(easy.raw, CURLOPT_PREREQDATA, Unmanaged.passUnretained(self).toOpaque())
        freshet_curl_set_request_function(easy.raw) { exchange, address, localAddress, _, localPort in
            guard let exchange, let address, let localAddress else { return CURL_PREREQFUNC_ABORT }
            let ends = RedirectReach.Ends(remote: String(cString: address), local: String(cString: localAddress))
            return Unmanaged<HTTPExchange>.fromOpaque(exchange).takeUnretainedValue()
                .maySend(ends, from: localPort) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
        limitLookups()
        freshet_curl_set_pointer(easy.raw, CURLOPT_XFERINFODATA, Unmanaged.passUnretained(self).toOpaque())
        freshet_curl_set_progress_function(easy.raw) { exchange, _, _, _, _ in
            guard let exchange else { return 1 }
            return Unmanaged<HTTPExchange>.fromOpaque(exchange).takeUnretainedValue().mayGoOn() ? 0 : 1
        }
        easy.set(CURLOPT_NOPROGRESS, 0)
        freshet_curl_set_pointer(easy.raw, CURLOPT_HEADERDATA, Unmanaged.passUnretained(self).toOpaque())
        freshet_curl_set_data_function(easy.raw, CURLOPT_HEADERFUNCTION) { data, size, count, exchange in
            guard let exchange, let data else { return 0 }
            return Unmanaged<HTTPExchange>.fromOpaque(exchange).takeUnretainedValue()
                .receive(line: UnsafeRawBufferPointer(start: data, count: size * count))
        }
        freshet_curl_set_pointer(easy.raw, CURLOPT_WRITEDATA, Unmanaged.passUnretained(self).toOpaque())
        freshet_curl_set_data_function(easy.raw, CURLOPT_WRITEFUNCTION) { data, size, count, exchange in
            guard let exchange, let data else { return 0 }
            // The exchange outlives its request: the client holds it until the handle has been removed from the pool.
            return Unmanaged<HTTPExchange>.fromOpaque(exchange).takeUnretainedValue()
                .receive(UnsafeRawBufferPointer(start: data, count: size * count))
        }
    }

    /// Prepares a handle for one hop. The handle of the previous hop must have been removed from its pool.
    ///
    /// - Parameter forRest: whether the received part of the body is kept and the rest is requested.
    /// - Returns: false if the process is out of memory.
    func prepare(_ hop: TransferStateMachine.Hop, forRest: Bool = false) -> Bool {
        if easy.isUsed {
            guard let next = EasyHandle() else { return false }
            easy = next
            configure()
        }
        self.hop = hop
        if forRest {
            resumptions += 1
        } else {
            partial = nil
            body.restart()
        }
        body.beginHop()
        offset = body.spool.count
        bodyUse = .undecided
        stop = nil
        lookup = nil
        head = ResponseHead()
        request.prepare(easy, for: hop, rest: partial?.fields(from: offset))
        return true
    }

    // MARK: The connection

    /// libcurl's callback before it looks up a name. Returns whether the lookup is allowed.
    func mayLookUp() -> Bool {
        guard let host = hop?.location.origin.hostForPeople else { return true }
        if let failure = lookups?.failure(of: host) {
            stop = .refused(failure)
            return false
        }
        lookup = host
        return true
    }

    /// The host whose lookup has not ended; nil if no lookup is in progress.
    var waitsForLookup: String? { (easy.offset(CURLINFO_NAMELOOKUP_TIME_T) ?? 0) == 0 ? lookup : nil }

    /// libcurl's callback before a request is written. Returns whether the request may be sent on the connection.
    ///
    /// - Parameters:
    ///   - ends: the addresses of the connection; the remote end may be a proxy.
    ///   - localPort: 0 if the connection has no local port.
    private func maySend(_ ends: RedirectReach.Ends, from localPort: Int32) -> Bool {
        if easy.number(CURLINFO_NUM_CONNECTS) > 0 {
            sockets?.learn(localPort: localPort)
        } else if easy.hasPendingInput || sockets?.hasInput(localPort: localPort) ?? true {
            // An answer that arrives before its request would be used as the answer to the request.
            stop = .connectionNotIdle
            return false
        }
        if let reach = reach.refusal(of: ends, own: OwnAddresses.now) {
            stop = .privateAddress(ends.remote, reach)
            return false
        }
        return true
    }

    /// libcurl's callback for each step of the request. Returns whether the request may continue: libcurl reads the
    /// answer of a proxy to CONNECT in one call for as long as bytes arrive, without a look at its timeouts.
    private func mayGoOn() -> Bool {
        guard let calls, calls.isExceeded(by: self) else { return true }
        stop = isConnected ? .endless : .endlessProxy(status: easy.number(CURLINFO_HTTP_CONNECTCODE))
        return false
    }

    // MARK: The answer

    /// libcurl's header callback for a line of the head or of the trailers. A return value other than the line's length
    /// ends the request.
    private func receive(line: UnsafeRawBufferPointer) -> Int {
        do throws(ResponseHead.Violation) {
            try head.take(line)
            return line.count
        } catch {
            stop = .violation(error)
            return 0
        }
    }

    /// libcurl's write callback for a piece of the body. A return value other than the piece's length ends the request,
    /// or pauses it until ``ConnectionPool/resume(_:)``; libcurl then delivers the piece again.
    private func receive(_ piece: UnsafeRawBufferPointer) -> Int {
        let action: BodyReceiver.Action
        do throws(TransferStop) {
            if bodyUse == .undecided { try begin() }
            action =
                bodyUse == .kept
                ? body.receive(piece)
                : body.skip(piece, upTo: request.purpose == .data ? Self.ignoredBodyLimit : Self.statusBodyLimit)
        } catch {
            action = .end(error)
        }
        if body.spool.hasPiece { wake() }
        switch action {
        case .goOn: return piece.count
        case .pause: return Int(CURL_WRITEFUNC_PAUSE)
        case .end(let reason):
            stop = reason
            return 0
        }
    }

    /// Stores the waiter. It checks again for a piece or the end, because other tasks may run before the suspension.
    func wait(_ waiter: CheckedContinuation<Void, Never>) {
        guard !body.spool.hasPiece, result == nil else { return waiter.resume() }
        self.waiter = waiter
    }

    /// Resumes the task that waits for a piece or the end.
    func wake() {
        waiter?.resume()
        waiter = nil
    }

    /// Checks the head of the answer before the first piece of the body is taken.
    private func begin() throws(TransferStop) {
        let status = easy.number(CURLINFO_RESPONSE_CODE)
        bodyUse = request.purpose == .data && (200..<300).contains(status) ? .kept : .skipped
        guard bodyUse == .kept else { return }
        if partial != nil {
            if status == 206 { return try checkRest() }
            guard head["content-range"] == nil else {
                throw .wrongRest(notTheRest("it answered \(status) with a Content-Range"))
            }
            // The origin sent the whole body: it has changed, or the origin does not serve ranges.
            partial = nil
            body.restart()
        } else if let range = head["content-range"].flatMap({ ContentRange($0) }), !range.isWhole, status != 206 {
            throw .refused(
                RunFailure(.content, "\(host) sent a part of the body that was not requested (Content-Range)"))
        }
        if let rejection = fetch.rejection, let error = mediaTypeFailure(rejection) { throw .refused(error) }
        try body.expect(
            easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T),
            coding: fetch.coding == .kept ? nil : head.list("content-encoding"))
        if resumptions == 0, let expected = body.expected { fetch.announced(expected) }
    }

    /// The failure for the media type of an answer that would be accepted otherwise; nil if the type is accepted.
    private func mediaTypeFailure(_ rejection: (String?) -> RunFailure?) -> RunFailure? {
        let answer = lastAnswer(now: nil)
        guard case .content = answer.meaning(now: 0) else { return nil }
        return rejection(answer.mediaType)
    }

    /// Stops the request if a 206 is not certainly the rest of the received part.
    private func checkRest() throws(TransferStop) {
        let rest = PartialBody.Rest(head, length: easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T))
        guard let error = partial?.error(in: rest, from: offset) else { return }
        throw .wrongRest(notTheRest(error))
    }

    private func notTheRest(_ reason: String) -> RunFailure {
        RunFailure(
            .content,
            "the connection to \(host) broke, and the part that it sent then is not certainly the rest of the body: "
                + reason)
    }

    /// The host of the hop, for messages.
    private var host: String { place(path: "") }

    /// The host of the hop, with the path if the URL stands in the configuration: a redirect may lead to a path that
    /// contains a secret.
    private var placeOfAnswer: String {
        guard fetch.isConfiguredURL, let location = hop?.location, location == request.location else { return host }
        return place(path: location.pathForPeople)
    }

    private func place(path: String) -> String {
        let name = (hop?.location.origin.hostForPeople ?? request.source.host) + path
        return request.source.unixSocket.map { "\(name) at \($0)" } ?? name
    }

    /// How the hop ended that libcurl has just reported.
    ///
    /// - Parameter now: wall-clock time in seconds since 1970.
    func hopEnd(_ code: CURLcode, now: Int64) -> TransferStateMachine.HopEnd {
        guard request.purpose == .data else { return .final }
        if case .connectionNotIdle = stop { return .connectionUnusable }
        // Without a body, the write callback was not called: the received part is not the content of this answer.
        if code == CURLE_OK, partial != nil, bodyUse == .undecided {
            do throws(TransferStop) {
                try begin()
            } catch {
                stop = error
            }
        }
        if case .wrongRest = stop { return .restRejected }
        if hasAnswer(code), isConditionRejected || isOtherNotModified { return .conditionRejected }
        guard hasAnswer(code) else { return isRestWanted(code, now: now) ? .broken(at: body.spool.count) : .final }
        if isRest { return isRestWanted(code, now: now) ? .broken(at: body.spool.count) : .final }
        let status = easy.number(CURLINFO_RESPONSE_CODE)
        guard HTTPAnswer.isRedirect(status), let reference = head["location"], !reference.isEmpty
        else { return .final }
        return .redirect(status: status, to: reference)
    }

    /// Whether the hop's request had conditions.
    private var wasConditional: Bool {
        request.validators != nil && partial == nil && hop?.sendsBody == false && hop?.isConditional == true
    }

    /// Whether the origin may have rejected the request for its conditions: some origins send these answers if a field
    /// is too long or has characters that they do not accept. Without the conditions the request may succeed.
    private var isConditionRejected: Bool { wasConditional && (head.status == 400 || head.status == 431) }

    /// Whether the answer is a 304 for other content than the validators of the request: an error of the origin, or of
    /// a cache in between. Without the conditions the request returns the content.
    private var isOtherNotModified: Bool {
        guard wasConditional, head.status == 304, let validators = request.validators else { return false }
        return ResponseValidators(
            entityTag: head.token("etag"), lastModified: head.token("last-modified"), date: head["date"]
        ).areOthers(than: validators)
    }

    /// Whether the hop had a connection, so that its request could be sent.
    var isConnected: Bool { (easy.offset(CURLINFO_PRETRANSFER_TIME_T) ?? 0) > 0 }

    /// Whether the answer is the rest of a body, or a part of the rest.
    private var isRest: Bool { partial != nil && easy.number(CURLINFO_RESPONSE_CODE) == 206 }

    /// Whether the body is incomplete and its rest can be requested.
    private func isRestWanted(_ code: CURLcode, now: Int64) -> Bool {
        switch code {
        case CURLE_OK, CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_OPERATION_TIMEDOUT: break
        default: return false
        }
        guard stop == nil, bodyUse == .kept, hop?.sendsBody == false, body.spool.count >= PartialBody.minimum
        else { return false }
        if partial == nil {
            let answer = lastAnswer(now: now)
            // With an entity tag, even if it cannot be sent back, a date is not allowed (RFC 9110, 13.1.5).
            guard answer.entityTag != nil || head["etag"] == nil else { return false }
            partial = PartialBody(
                of: answer,
                PartialBody.Fields(
                    contentEncoding: head["content-encoding"], acceptRanges: head["accept-ranges"]),
                announced: easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T))
        }
        guard let partial else { return false }
        return UInt64(body.spool.count) < partial.total
    }

    /// The answer to a request for a status; nil without an answer. It is set before the outcome.
    private(set) var answer: StatusAnswer?

    /// The outcome of the last hop.
    ///
    /// - Parameter now: wall-clock time in seconds since 1970.
    func outcome(_ code: CURLcode, now: Int64) -> Result<FetchResult, FetchError> {
        guard hasAnswer(code) else {
            return .failure(
                .failed(stop?.failure(at: host, limit: fetch.maxBytes, role: request.role) ?? failure(code)))
        }
        if request.purpose == .status {
            let status = easy.number(CURLINFO_RESPONSE_CODE)
            answer = StatusAnswer(
                status: status,
                redirect: HTTPAnswer.isRedirect(status)
                    ? head["location"].flatMap { hop?.location.resolving($0) } : nil)
        }
        if let partial, isRest { return wholeBody(partial, now: now) }
        let answer = lastAnswer(now: now)
        switch answer.meaning(now: now) {
        case .content:
            if let failure = incompleteness { return .failure(.failed(failure)) }
            return content(of: answer, now: now)
        case .notModified:
            let validators = validators(of: answer)
            return .success(.notModified(validators.isEmpty ? nil : validators, freshFor: freshness(now: now)))
        case .failure(let failure):
            return .failure(.failed(failure))
        }
    }

    /// Why the body may be incomplete; nil: it is certainly complete, or a check of the content proves it.
    private var incompleteness: RunFailure? {
        guard body.isComplete else {
            return RunFailure(
                .transient,
                "the body ended before the end of its compression, after "
                    + "\(Text.grouped(UInt64(body.spool.count))) decoded bytes (\(host))")
        }
        guard head.isUnframed, !fetch.isProven, !request.source.allowsUnframed else { return nil }
        return RunFailure(
            .content,
            "the end of the body is not certain: \(host) sent neither its length nor chunks; to accept that: "
                + "source.allow-unframed: true")
    }

    /// When the head of the last hop's answer arrived, in wall-clock seconds since 1970, rounded down. The body may
    /// have taken a long time since then.
    private func received(_ now: Int64) -> Int64 {
        let total = easy.offset(CURLINFO_TOTAL_TIME_T) ?? 0
        let sinceThen = total - min(easy.offset(CURLINFO_STARTTRANSFER_TIME_T) ?? 0, total)
        return now - Int64(clamping: sinceThen / 1_000_000 + 1)
    }

    /// The answer of the last hop.
    ///
    /// - Parameter now: wall-clock time in seconds since 1970; nil if the time of the answer is not needed.
    private func lastAnswer(now: Int64?) -> HTTPAnswer {
        let status = easy.number(CURLINFO_RESPONSE_CODE)
        let wasConditional = wasConditional
        return HTTPAnswer(
            status: status, host: HTTPAnswer.isUsual(status, wasConditional: wasConditional) ? "" : placeOfAnswer,
            contentType: head["content-type"],
            entityTag: head.token("etag"), lastModified: head.token("last-modified"), date: head["date"],
            received: now.map { received($0) }, retryAfter: head["retry-after"],
            wasConditional: wasConditional, wasForRest: partial != nil,
            identity: hop?.carriesCredentials == false ? .withheld : HTTPAnswer.Identity(of: request.source))
    }

    /// The content of a body that was received in several parts.
    private func wholeBody(_ partial: PartialBody, now: Int64) -> Result<FetchResult, FetchError> {
        guard UInt64(body.spool.count) == partial.total else {
            return .failure(
                .failed(
                    RunFailure(
                        .content,
                        "the body came in parts and has \(Text.grouped(UInt64(body.spool.count))) bytes instead of "
                            + "\(Text.grouped(partial.total)) (\(host))")))
        }
        return content(of: partial.answer, now: now)
    }

    /// The content of an answer, with the part of the body that was not handed on.
    private func content(of answer: HTTPAnswer, now: Int64) -> Result<FetchResult, FetchError> {
        .success(
            .content(
                FetchedContent(
                    bytes: body.spool.takeRest(), mediaType: answer.mediaType,
                    validators: validators(of: answer), freshFor: freshness(now: now),
                    links: head.values(of: "link", atMost: Self.linkLimit),
                    location: hop?.location.url)))
    }

    /// The validators for the next request for the configured URL; none if the answer is from another URL.
    private func validators(of answer: HTTPAnswer) -> Validators {
        hop?.isRedirected == true ? Validators() : answer.validators
    }

    /// How much longer the answer is fresh according to its own fields.
    private func freshness(now: Int64) -> Duration? {
        guard head.contains("cache-control") || head.contains("expires") else { return nil }
        return OriginFreshness(head).remaining(
            after: .microseconds(Int64(clamping: easy.offset(CURLINFO_TOTAL_TIME_T) ?? 0)), now: now)
    }

    /// Whether the answer was received: completely, or without the rest of a body that is not needed.
    private func hasAnswer(_ code: CURLcode) -> Bool {
        if code == CURLE_OK { return true }
        if code == CURLE_WRITE_ERROR, case .uninteresting = stop { return true }
        return false
    }

    private func failure(_ code: CURLcode) -> RunFailure {
        TransferFailure(
            code: code, detail: easy.errorMessage, host: host, socket: request.source.unixSocket,
            systemError: Int32(truncatingIfNeeded: easy.number(CURLINFO_OS_ERRNO)),
            received: partial == nil ? easy.offset(CURLINFO_SIZE_DOWNLOAD_T) ?? 0 : UInt64(body.spool.count),
            announced: partial?.total ?? easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T),
            resumptions: resumptions,
            wasConnected: isConnected,
            wasResolved: (easy.offset(CURLINFO_NAMELOOKUP_TIME_T) ?? 0) > 0,
            verification: easy.number(CURLINFO_SSL_VERIFYRESULT),
            certificate: code == CURLE_PEER_FAILED_VERIFICATION ? easy.peerCertificate.facts : nil,
            limits: request.options, role: request.role
        ).failure
    }
}
