import CCurl
import FreshetModel
import FreshetPipelines
import Glibc

/// One request to a source with all its hops: libcurl's handle, the part of the body that was not handed on, and the
/// task that waits for more of the body or for the end.
///
/// Not `Sendable`: it belongs to its ``HTTPClient`` and is used on the loop's thread only, also by libcurl's callbacks.
final class HTTPExchange {
    /// Why a callback ended the request; libcurl itself only reports that a callback stopped it.
    private enum Stop {
        case tooLarge(announced: UInt64?)
        /// The request or its answer is not accepted, for the reason in the failure.
        case refused(RunFailure)
        /// The body of a redirect or of an error is long: reading it costs more than a new connection.
        case uninteresting
        /// The received data is not certainly the rest of the body.
        case wrongRest(RunFailure)
        /// The head or the trailers violate HTTP, or are too long.
        case violation(ResponseHead.Violation)
        /// The content coding of the body cannot be decoded.
        case undecodable(ContentDecoder.Failure)
        /// The reused connection has data to read before the request is written.
        case connectionNotIdle
        /// A redirect led to an address that only this machine or its network should reach.
        case privateAddress(String, AddressClass)
    }

    /// The purpose of the request.
    enum Purpose: Hashable {
        /// To fetch data: redirects are followed.
        case data
        /// To get the status of the URL itself, on a new connection: redirects are not followed, and no data is kept.
        case status
    }

    /// The number of pieces of a body that are processed before other work may use the loop: a millisecond at most.
    /// libcurl then delivers the rest of its buffer as one piece, even if its chunks are small.
    static let piecesPerTurn = 256

    /// The answer to a request for a status.
    struct Answer: Hashable {
        var status: Int
        /// The target of a redirect; nil if the answer is not a redirect, or its target is not an http or https URL.
        var redirect: Location?
    }

    /// The most bytes of an unused body that are read, so that its connection can be reused.
    static let ignoredBodyLimit = 64 << 10
    /// The most bytes of the body that are read if only the status is needed.
    static let statusBodyLimit = 4 << 10
    /// The most `Link` fields of an answer: one of them has the next page, a few others are usual.
    static let linkLimit = 16
    /// The most memory that is reserved for a body because of its announced length, in bytes.
    static let reserveLimit: UInt64 = 8 << 20
    /// The size of the decoder's output buffer, in bytes.
    static let blockSize = 64 << 10
    /// The number of bytes that are decoded from one piece before other work may use the loop: about two milliseconds.
    static let decodedBytesPerTurn = 1 << 20

    /// The handle of the present hop: each hop has a new handle.
    private(set) var easy: EasyHandle
    let source: HTTPSource
    let validators: Validators?
    let maxBytes: UInt64
    let options: HTTPClient.Options
    private let purpose: Purpose
    private let configured: Location
    /// The configuration's header fields, secrets included.
    private let fields: [String]
    private let proof: ClientIdentity?
    private let progress: @Sendable (UInt64) -> Void
    private let announced: @Sendable (UInt64) -> Void
    /// Called for each hop that begins.
    let asked: @Sendable () -> Void
    private let isProven: Bool
    private let rejection: (@Sendable (String?) -> RunFailure?)?
    /// The store for a long body; nil: the whole body stays in memory.
    let bodyStore: (any BodyStoring)?

    var machine: TransferStateMachine
    /// Set while the task waits for the next piece of the body or for the end.
    var waiter: CheckedContinuation<Void, Never>?
    /// Nil while the request is in progress.
    var result: Result<FetchResult, FetchError>?
    /// The serial number of the pool of the present hop.
    var pool: UInt64 = 0

    private var hop: TransferStateMachine.Hop?
    /// The part of the body that was not handed on.
    var spool: BodySpool
    /// The sockets of the present hop's pool.
    var sockets: ConnectionSockets?
    /// The client's limiter of lookups.
    var lookups: LookupLimiter?
    /// The host whose lookup libcurl has begun for this hop.
    private var lookup: String?
    /// Schedules a call of ``HTTPClient/goOn(_:)`` in another turn of the loop.
    var yieldTurn: () -> Void = {}
    /// The decoder of the body; nil if the body has no content coding.
    private var decoder: ContentDecoder?
    /// The decoder's output buffer.
    private var block: [UInt8] = []
    /// The number of decoded bytes in ``block`` that are not in the spool yet, because it was full.
    private var blockCount = 0
    /// The number of bytes that were already decoded of the piece that libcurl delivers again.
    private var taken = 0
    /// Whether the request waits for another turn of the loop.
    private var hasYielded = false
    /// The body's length, if the origin announced it.
    private(set) var expected: UInt64?
    private var ignored = 0
    /// The number of pieces since the loop had other work, and of received bytes before decoding.
    private var pieces = (count: 0, bytes: 0)
    private var hasBodyBegun = false
    private var takesBody = false
    private var stop: Stop?
    /// The head of the hop's response, as far as it was received.
    private var head = ResponseHead()
    /// The body whose rest the hop requests; nil if the hop requests the whole body.
    private var partial: PartialBody?
    /// The number of bytes of the body before this hop.
    private var offset = 0
    private var resumptions = 0
    private var reach = RedirectReach()

    init(
        _ easy: EasyHandle, _ request: FetchRequest, _ source: HTTPSource, at location: Location, fields: [String],
        proof: ClientIdentity? = nil, options: HTTPClient.Options, for purpose: Purpose = .data
    ) {
        self.easy = easy
        self.purpose = purpose
        self.source = source
        self.options = options
        validators = request.validators.flatMap { $0.isEmpty ? nil : $0 }
        configured = location
        self.fields = fields
        self.proof = proof
        maxBytes = request.maxBytes
        progress = request.progress
        announced = request.announced
        asked = request.asked
        isProven = request.isProven
        rejection = request.rejection
        bodyStore = request.bodyStore
        spool = BodySpool(handsOn: request.bodyStore != nil, limit: request.maxBytes)
        machine = TransferStateMachine(
            location, sendsBody: source.method != .get, staysAtOrigin: source.unixSocket != nil,
            redirects: source.redirects)
        configure()
    }

    // MARK: The request

    /// Sets the options that are the same for all hops.
    private func configure() {
        easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
        easy.set(CURLOPT_FOLLOWLOCATION, 0)
        easy.set(CURLOPT_USERAGENT, options.userAgent)
        easy.set(CURLOPT_ACCEPT_ENCODING, ContentDecoder.accepted)
        easy.set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeout.wholeMilliseconds)
        easy.set(CURLOPT_LOW_SPEED_LIMIT, 1)
        easy.set(CURLOPT_LOW_SPEED_TIME, max(1, options.stallLimit.wholeMilliseconds / 1_000))
        // libcurl must not use signals, which belong to the program; libcurl's timeouts do not need them.
        easy.set(CURLOPT_NOSIGNAL, 1)
        // A lookup runs on a thread of libcurl that cannot be interrupted. With this option, removing the request does
        // not wait for the thread, which would take seconds if the name server does not answer.
        easy.set(CURLOPT_QUICK_EXIT, 1)
        if purpose == .status {
            // An existing connection does not show whether new connections are possible.
            easy.set(CURLOPT_FRESH_CONNECT, 1)
            easy.set(CURLOPT_FORBID_REUSE, 1)
        }
        easy.set(CURLOPT_UNIX_SOCKET_PATH, source.unixSocket)
        freshet_curl_set_pointer(easy.raw, CURLOPT_PREREQDATA, Unmanaged.passUnretained(self).toOpaque())
        freshet_curl_set_request_function(easy.raw) { exchange, address, localAddress, _, localPort in
            guard let exchange, let address, let localAddress else { return CURL_PREREQFUNC_ABORT }
            let ends = RedirectReach.Ends(remote: String(cString: address), local: String(cString: localAddress))
            return Unmanaged<HTTPExchange>.fromOpaque(exchange).takeUnretainedValue()
                .maySend(ends, from: localPort) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
        limitLookups()
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
            spool.restart()
        }
        spool.unpause()
        offset = spool.count
        ignored = 0
        hasBodyBegun = false
        takesBody = false
        stop = nil
        lookup = nil
        head = ResponseHead()
        decoder = nil
        blockCount = 0
        taken = 0
        pieces = (0, 0)
        hasYielded = false
        easy.set(CURLOPT_URL, hop.location.url)
        let own = hop.carriesCredentials
        // The user information of the configured URL; a redirect within the origin keeps it.
        easy.set(CURLOPT_USERNAME, own ? configured.user : nil)
        easy.set(CURLOPT_PASSWORD, own ? configured.password : nil)
        easy.setProof(own ? proof : nil)
        if source.certificateAuthority != nil || options.certificateAuthorities != nil {
            easy.setAuthorities((own ? source.certificateAuthority : nil) ?? options.certificateAuthorities)
        }
        // Secrets over plain http are only sent to this machine, and without a proxy, which could read them.
        let isPrivate = own && (source.isPrivate || configured.user != nil)
        let staysHere = isPrivate && source.isLocal && hop.location.origin.scheme == "http"
        easy.set(CURLOPT_NOPROXY, staysHere || source.unixSocket != nil ? "*" : nil)
        var lines = own ? fields : []
        if hop.sendsBody, case .post(let text, let contentType) = source.method {
            easy.setBody(text)
            // A field without a value removes libcurl's default field.
            lines.append(text.isEmpty ? "Content-Type:" : "Content-Type: \(contentType)")
        } else {
            easy.setBody(nil)
        }
        if let partial {
            lines += partial.fields(from: offset)
        } else if !hop.sendsBody, hop.isConditional {
            // A POST must not be conditional: its answer would be 412 (RFC 9110, 13.1).
            if let tag = validators?.entityTag { lines.append("If-None-Match: \(tag)") }
            if let date = validators?.lastModified { lines.append("If-Modified-Since: \(date)") }
        }
        easy.setHeaders(lines)
        if purpose == .data { easy.set(CURLOPT_FRESH_CONNECT, hop.wantsNewConnection ? 1 : 0) }
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
        if !hasBodyBegun {
            hasBodyBegun = true
            begin()
            guard stop == nil else { return 0 }
        }
        guard takesBody else {
            ignored += piece.count
            guard ignored <= (purpose == .data ? Self.ignoredBodyLimit : Self.statusBodyLimit) else {
                stop = .uninteresting
                return 0
            }
            return piece.count
        }
        if let action = count(piece) { return action == .pause ? Int(CURL_WRITEFUNC_PAUSE) : 0 }
        let action = decoder.map { decode(piece, $0) } ?? keep(piece)
        progress(UInt64(spool.count))
        switch action {
        case .goOn: return piece.count
        case .pause: return Int(CURL_WRITEFUNC_PAUSE)
        case .end: return 0
        }
    }

    private enum PieceAction {
        case goOn
        case pause
        /// The request ends; ``stop`` has the reason.
        case end
    }

    /// Limits the cost of pieces with little content: chunks of a few bytes, or a compressed body that decodes to
    /// nothing. Returns nil if the piece is to be processed.
    private func count(_ piece: UnsafeRawBufferPointer) -> PieceAction? {
        guard pieces.count < Self.piecesPerTurn else {
            pieces.count = 0
            hasYielded = true
            yieldTurn()
            return .pause
        }
        pieces.count += 1
        // A piece that libcurl delivers again was already counted.
        guard taken == 0 && blockCount == 0 else { return nil }
        pieces.bytes += piece.count
        // Compression makes a body at most a thousandth longer.
        guard decoder == nil || UInt64(pieces.bytes) <= maxBytes + maxBytes / 64 + UInt64(Self.blockSize) else {
            stop = .tooLarge(announced: nil)
            return .end
        }
        return nil
    }

    /// Adds bytes of the decoded body to the spool.
    private func keep(_ bytes: UnsafeRawBufferPointer) -> PieceAction {
        guard UInt64(spool.count) + UInt64(bytes.count) <= maxBytes else {
            stop = .tooLarge(announced: nil)
            return .end
        }
        switch spool.take(bytes) {
        case .none: return .goOn
        case .handOn:
            wake()
            return .goOn
        case .pause: return .pause
        }
    }

    /// Decodes a piece into the spool. A few bytes may become a thousand times as many, so after
    /// ``decodedBytesPerTurn`` the rest waits for the loop's next turn.
    private func decode(_ piece: UnsafeRawBufferPointer, _ decoder: ContentDecoder) -> PieceAction {
        if block.isEmpty { block = [UInt8](repeating: 0, count: Self.blockSize) }
        var made = 0
        while true {
            if blockCount > 0 {
                let action = block.withUnsafeBytes { keep(UnsafeRawBufferPointer(rebasing: $0[..<blockCount])) }
                guard action == .goOn else { return action }
                made += blockCount
                blockCount = 0
            }
            if made >= Self.decodedBytesPerTurn {
                hasYielded = true
                yieldTurn()
                return .pause
            }
            let input = UnsafeRawBufferPointer(rebasing: piece.dropFirst(taken))
            let result = block.withUnsafeMutableBytes { output in
                Result { () throws(ContentDecoder.Failure) in try decoder.decode(input, into: output) }
            }
            switch result {
            case .success(let count):
                taken += count.taken
                blockCount = count.made
            case .failure(let failure):
                stop = .undecodable(failure)
                return .end
            }
            if blockCount == 0 {
                taken = 0
                return .goOn
            }
        }
    }

    /// Returns whether the request was paused and can continue now.
    func unpause() -> Bool {
        defer { hasYielded = false }
        return spool.unpause() || hasYielded
    }

    /// Stores the waiter. It checks again for a piece or the end, because other tasks may run before the suspension.
    func wait(_ waiter: CheckedContinuation<Void, Never>) {
        guard !spool.hasPiece, result == nil else { return waiter.resume() }
        self.waiter = waiter
    }

    /// Resumes the task that waits for a piece or the end.
    func wake() {
        waiter?.resume()
        waiter = nil
    }

    /// Checks the head of the answer before the first piece of the body is taken.
    private func begin() {
        let status = easy.number(CURLINFO_RESPONSE_CODE)
        takesBody = purpose == .data && (200..<300).contains(status)
        guard takesBody else { return }
        if partial != nil {
            if status == 206 { return checkRest() }
            guard head["content-range"] == nil else {
                stop = .wrongRest(notTheRest("it answered \(status) with a Content-Range"))
                return
            }
            // The origin sent the whole body: it has changed, or the origin does not serve ranges.
            partial = nil
            spool.restart()
        } else if let range = head["content-range"].flatMap({ ContentRange($0) }), !range.isWhole, status != 206 {
            stop = .refused(
                RunFailure(.content, "\(host) sent a part of the body that was not requested (Content-Range)"))
            return
        }
        expected = nil
        if let rejection, let error = mediaTypeFailure(rejection) {
            stop = .refused(error)
            return
        }
        do throws(ContentDecoder.Failure) {
            decoder = try ContentDecoder.forCoding(head.list("content-encoding"))
        } catch {
            stop = .undecodable(error)
            return
        }
        guard let length = easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T) else { return }
        // The length of a compressed body does not determine the decoded length.
        if decoder == nil {
            guard length <= maxBytes else {
                stop = .tooLarge(announced: length)
                return
            }
            expected = length
            if resumptions == 0 { announced(length) }
        }
        spool.reserve(Int(min(length, maxBytes, Self.reserveLimit)))
    }

    /// The failure for the media type of an answer that would be accepted otherwise; nil if the type is accepted.
    private func mediaTypeFailure(_ rejection: (String?) -> RunFailure?) -> RunFailure? {
        let answer = lastAnswer(now: nil)
        guard case .content = answer.meaning(now: 0) else { return nil }
        return rejection(answer.mediaType)
    }

    /// Stops the request if a 206 is not certainly the rest of the received part.
    private func checkRest() {
        let rest = PartialBody.Rest(
            contentRanges: head.values(of: "content-range"), entityTag: head.token("etag"),
            lastModified: head.token("last-modified"), contentType: head["content-type"],
            contentEncoding: head["content-encoding"], length: easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T))
        guard let error = partial?.error(in: rest, from: offset) else { return }
        stop = .wrongRest(notTheRest(error))
    }

    private func notTheRest(_ reason: String) -> RunFailure {
        RunFailure(
            .content,
            "the connection to \(host) broke, and the part that it sent then is not certainly the rest of the body: "
                + reason)
    }

    /// The host of the hop, for messages.
    private var host: String {
        let name = hop?.location.origin.hostForPeople ?? source.host
        return source.unixSocket.map { "\(name) at \($0)" } ?? name
    }

    /// How the hop ended that libcurl has just reported.
    ///
    /// - Parameter now: wall-clock time in seconds since 1970.
    func hopEnd(_ code: CURLcode, now: Int64) -> TransferStateMachine.HopEnd {
        guard purpose == .data else { return .final }
        if case .connectionNotIdle = stop { return .connectionUnusable }
        // Without a body, the write callback was not called: the received part is not the content of this answer.
        if code == CURLE_OK, partial != nil, !hasBodyBegun { begin() }
        if case .wrongRest = stop { return .restRejected }
        if hasAnswer(code), isConditionRejected || isOtherNotModified { return .conditionRejected }
        guard hasAnswer(code) else { return isRestWanted(code, now: now) ? .broken(at: spool.count) : .final }
        if isRest { return isRestWanted(code, now: now) ? .broken(at: spool.count) : .final }
        let status = easy.number(CURLINFO_RESPONSE_CODE)
        guard HTTPAnswer.isRedirect(status), let reference = head["location"], !reference.isEmpty
        else { return .final }
        return .redirect(status: status, to: reference)
    }

    /// Whether the origin may have rejected the request for its conditions: some origins send these answers if a field
    /// is too long or has characters that they do not accept. Without the conditions the request may succeed.
    private var isConditionRejected: Bool {
        guard validators != nil, partial == nil, let hop, hop.isConditional, !hop.sendsBody else { return false }
        return head.status == 400 || head.status == 431
    }

    /// Whether the answer is a 304 for other content than the validators of the request: an error of the origin, or of
    /// a cache in between. Without the conditions the request returns the content.
    private var isOtherNotModified: Bool {
        guard let validators, partial == nil, let hop, hop.isConditional, !hop.sendsBody else { return false }
        return head.status == 304 && lastAnswer(now: nil).stated.areOthers(than: validators)
    }

    /// Whether it is certain that the body is complete, or a check of the content proves it.
    private var isEndCertain: Bool { !head.isUnframed || isProven || source.allowsUnframed }

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
        guard stop == nil, takesBody, hop?.sendsBody == false, spool.count >= PartialBody.minimum else { return false }
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
        return UInt64(spool.count) < partial.total
    }

    /// The answer to a request for a status; nil without an answer. It is set before the outcome.
    private(set) var answer: Answer?

    /// The outcome of the last hop.
    ///
    /// - Parameter now: wall-clock time in seconds since 1970.
    func outcome(_ code: CURLcode, now: Int64) -> Result<FetchResult, FetchError> {
        guard hasAnswer(code) else {
            switch stop {
            case .wrongRest(let failure), .refused(let failure):
                return .failure(.failed(failure))
            case .violation(let violation):
                return .failure(.failed(RunFailure(.transient, "\(host) sent \(violation)")))
            case .undecodable(let failure):
                return .failure(
                    .failed(RunFailure(.content, "the body of \(host) cannot be decoded: \(failure.reason)")))
            case .privateAddress(let address, let reach):
                return .failure(
                    .failed(
                        RunFailure(
                            .refused,
                            "a redirect leads to \(host) at \(address), \(reach.words); not followed: the configured "
                                + "origin is not there")))
            case .connectionNotIdle:
                return .failure(
                    .failed(RunFailure(.transient, "\(host) sent data before the request")))
            case .tooLarge(let announced?):
                return .failure(.failed(SizeLimit.exceeded(by: host, announcing: announced, limit: maxBytes)))
            case .tooLarge(nil):
                return .failure(.failed(SizeLimit.exceeded(by: host, limit: maxBytes)))
            case .uninteresting, nil:
                return .failure(.failed(failure(code)))
            }
        }
        if purpose == .status {
            let status = easy.number(CURLINFO_RESPONSE_CODE)
            answer = Answer(
                status: status,
                redirect: HTTPAnswer.isRedirect(status)
                    ? head["location"].flatMap { hop?.location.resolving($0) } : nil)
        }
        if let partial, isRest { return wholeBody(partial, now: now) }
        let answer = lastAnswer(now: now)
        switch answer.meaning(now: now) {
        case .content:
            if let decoder, !decoder.isComplete {
                return .failure(
                    .failed(
                        RunFailure(
                            .transient,
                            "the body ended before the end of its compression, after "
                                + "\(Text.grouped(UInt64(spool.count))) decoded bytes (\(host))")))
            }
            guard isEndCertain else {
                return .failure(
                    .failed(
                        RunFailure(
                            .content,
                            "the end of the body is not certain: \(host) sent neither its length nor chunks; to accept "
                                + "that: source.allow-unframed: true")))
            }
            return content(of: answer, now: now)
        case .notModified:
            let validators = validators(of: answer)
            return .success(.notModified(validators.isEmpty ? nil : validators, freshFor: freshness(now: now)))
        case .failure(let failure):
            return .failure(.failed(failure))
        }
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
        HTTPAnswer(
            status: easy.number(CURLINFO_RESPONSE_CODE), host: host, contentType: head["content-type"],
            entityTag: head.token("etag"), lastModified: head.token("last-modified"), date: head["date"],
            received: now.map { received($0) }, retryAfter: head["retry-after"],
            wasConditional: validators != nil && partial == nil && hop?.sendsBody == false
                && hop?.isConditional == true,
            wasForRest: partial != nil,
            identity: hop?.carriesCredentials == false
                ? .withheld : .own(credentials: source.headers.compactMap(\.credential)))
    }

    /// The content of a body that was received in several parts.
    private func wholeBody(_ partial: PartialBody, now: Int64) -> Result<FetchResult, FetchError> {
        guard UInt64(spool.count) == partial.total else {
            return .failure(
                .failed(
                    RunFailure(
                        .content,
                        "the body came in parts and has \(Text.grouped(UInt64(spool.count))) bytes instead of "
                            + "\(Text.grouped(partial.total)) (\(host))")))
        }
        return content(of: partial.answer, now: now)
    }

    /// The content of an answer, with the part of the body that was not handed on.
    private func content(of answer: HTTPAnswer, now: Int64) -> Result<FetchResult, FetchError> {
        .success(
            .content(
                FetchedContent(
                    bytes: spool.takeRest(), mediaType: answer.mediaType,
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
        OriginFreshness(
            cacheControl: head.list("cache-control"), expires: head["expires"], date: head["date"],
            age: head["age"]
        ).remaining(after: .microseconds(Int64(clamping: easy.offset(CURLINFO_TOTAL_TIME_T) ?? 0)), now: now)
    }

    /// Whether the answer was received: completely, or without the rest of a body that is not needed.
    private func hasAnswer(_ code: CURLcode) -> Bool {
        if code == CURLE_OK { return true }
        if code == CURLE_WRITE_ERROR, case .uninteresting = stop { return true }
        return false
    }

    private func failure(_ code: CURLcode) -> RunFailure {
        TransferFailure(
            code: code, detail: easy.errorMessage, host: host, socket: source.unixSocket,
            systemError: Int32(truncatingIfNeeded: easy.number(CURLINFO_OS_ERRNO)),
            received: partial == nil ? easy.offset(CURLINFO_SIZE_DOWNLOAD_T) ?? 0 : UInt64(spool.count),
            announced: partial?.total ?? easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T),
            resumptions: resumptions,
            wasConnected: isConnected,
            wasResolved: (easy.offset(CURLINFO_NAMELOOKUP_TIME_T) ?? 0) > 0,
            verification: easy.number(CURLINFO_SSL_VERIFYRESULT), limits: options
        ).failure
    }
}

extension Duration {
    var wholeMilliseconds: Int {
        Int(clamping: components.seconds) * 1_000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }
}
