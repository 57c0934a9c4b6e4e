import CCurl
import FreshetPipelines
import Glibc

/// One request to a source with all its hops: libcurl's handle, the body as far as nobody has taken it, and who waits for
/// more of it or for the end.
///
/// Not `Sendable`: it belongs to its ``HTTPClient`` and is touched on the loop's thread only, by libcurl's callbacks too.
final class HTTPExchange {
    /// What the write callback found that ends the request; libcurl itself knows only that it was told to stop.
    private enum Stop {
        case tooLarge(announced: UInt64?)
        /// By what was said of the body.
        case refused(RunFailure)
        /// The body is that of a redirect or of an error, and long: the connection is dearer than worth.
        case uninteresting
        /// What came as the rest of a body is not that.
        case wrongRest(RunFailure)
        /// The head or the trailers are not what HTTP allows, or too long.
        case violation(ResponseHead.Violation)
        /// The content coding of the body cannot be decoded.
        case undecodable(ContentDecoder.Failure)
        /// The idle connection has something to read before the request is written.
        case connectionNotIdle
        /// A redirect led to an address that only this machine, or its network, should reach.
        case privateAddress(String, AddressClass)
    }

    /// What the request is for.
    enum Purpose: Hashable {
        /// Data: redirects are followed.
        case data
        /// The status of the URL itself, asked on a connection of its own: nothing is followed or kept.
        case status
    }

    /// So many pieces of a body are handled before other work gets the loop: a millisecond at most. What is left of libcurl's
    /// buffer then comes as one piece, however small its chunks are.
    static let piecesPerTurn = 256

    /// What came without being followed.
    struct Answer: Hashable {
        var status: Int
        /// Where a redirect leads; nil: it is none, or leads to no URL of HTTP.
        var redirect: Location?
    }

    /// So much of a body that nobody will see is read, so that its connection can be used again.
    static let ignoredBodyLimit = 64 << 10
    /// So much of the body is read if the status is all that matters.
    static let statusBodyLimit = 4 << 10
    /// So many `Link` fields are handed on: one says where the next page is, a few more what else there is.
    static let linkLimit = 16
    /// The most memory that is set aside for a body because of what the origin announces.
    static let reserveLimit: UInt64 = 8 << 20
    /// Bytes that are decoded at once.
    static let blockSize = 64 << 10
    /// Bytes that one piece of the body may become before other work gets the loop: about two milliseconds.
    static let decodedBytesPerTurn = 1 << 20

    let easy: EasyHandle
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
    /// Told of each hop that begins.
    let asked: @Sendable () -> Void
    private let isProven: Bool
    private let refusal: (@Sendable (String?) -> RunFailure?)?
    /// Where the body goes if it is long.
    let keeper: (any BodyStoring)?

    var machine: TransferStateMachine
    /// Set while its task waits for the next piece of the body, or for the end.
    var waiter: CheckedContinuation<Void, Never>?
    /// Nil while the request is under way.
    var result: Result<FetchResult, FetchError>?
    /// The pool on which it runs.
    var pool: UInt64 = 0

    private var hop: TransferStateMachine.Hop?
    /// What of the body is not written away.
    var spool: BodySpool
    /// Those of the pool on which it runs.
    var sockets: ConnectionSockets?
    /// Asks its client to call ``HTTPClient/goOn(_:)`` in another turn of the loop.
    var yieldTurn: () -> Void = {}
    /// Nil: the body comes as it is.
    private var decoder: ContentDecoder?
    /// Where the decoder writes.
    private var block: [UInt8] = []
    /// So many bytes of ``block`` are decoded and not in the spool yet, since it was full.
    private var blockCount = 0
    /// So many bytes of the piece that comes again were decoded.
    private var taken = 0
    /// Waits for the loop's next turn.
    private var hasYielded = false
    /// The body's length, if its origin says it.
    private(set) var expected: UInt64?
    private var ignored = 0
    /// Pieces since the loop had other work, and bytes of the body as they came.
    private var pieces = (count: 0, bytes: 0)
    private var hasBodyBegun = false
    private var takesBody = false
    private var stop: Stop?
    /// Of the hop's response, as far as it came.
    private var head = ResponseHead()
    /// The body before this hop, of which the hop asks for the rest; nil: it asks for the whole.
    private var partial: PartialBody?
    /// How much was there before this hop.
    private var offset = 0
    private var resumptions = 0
    /// What kind of address the configured origin has; nil: nothing was connected to yet.
    private var firstReach: AddressClass?

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
        refusal = request.refusal
        keeper = request.keeper
        spool = BodySpool(handsOn: request.keeper != nil, limit: request.maxBytes)
        machine = TransferStateMachine(
            location, sendsBody: source.method != .get, staysAtOrigin: source.unixSocket != nil,
            redirects: source.redirects)
        configure()
    }

    // MARK: The request

    /// What is the same for all hops.
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
        // Signals belong to the program, and libcurl's time-outs work without.
        easy.set(CURLOPT_NOSIGNAL, 1)
        // A name look-up runs on a thread of libcurl's that nothing can interrupt; taking the request away does not
        // wait for it. With a dead name server it would, for seconds.
        easy.set(CURLOPT_QUICK_EXIT, 1)
        if purpose == .status {
            // One that was made before says nothing about those to come.
            easy.set(CURLOPT_FRESH_CONNECT, 1)
            easy.set(CURLOPT_FORBID_REUSE, 1)
        }
        easy.set(CURLOPT_UNIX_SOCKET_PATH, source.unixSocket)
        freshet_curl_set_pointer(easy.raw, CURLOPT_PREREQDATA, Unmanaged.passUnretained(self).toOpaque())
        freshet_curl_set_request_function(easy.raw) { exchange, address, _, _, localPort in
            guard let exchange, let address else { return CURL_PREREQFUNC_ABORT }
            return Unmanaged<HTTPExchange>.fromOpaque(exchange).takeUnretainedValue()
                .mayAsk(at: String(cString: address), from: localPort) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
        freshet_curl_set_pointer(easy.raw, CURLOPT_HEADERDATA, Unmanaged.passUnretained(self).toOpaque())
        freshet_curl_set_data_function(easy.raw, CURLOPT_HEADERFUNCTION) { data, size, count, exchange in
            guard let exchange, let data else { return 0 }
            return Unmanaged<HTTPExchange>.fromOpaque(exchange).takeUnretainedValue()
                .receive(line: UnsafeRawBufferPointer(start: data, count: size * count))
        }
        freshet_curl_set_pointer(easy.raw, CURLOPT_WRITEDATA, Unmanaged.passUnretained(self).toOpaque())
        freshet_curl_set_data_function(easy.raw, CURLOPT_WRITEFUNCTION) { data, size, count, exchange in
            guard let exchange, let data else { return 0 }
            // The exchange outlives its request: the client holds it until the handle was taken out of the pool.
            return Unmanaged<HTTPExchange>.fromOpaque(exchange).takeUnretainedValue()
                .receive(UnsafeRawBufferPointer(start: data, count: size * count))
        }
    }

    /// Sets the handle up for one hop.
    ///
    /// - Parameter forRest: what is there of the body stays, and what follows is asked for.
    func prepare(_ hop: TransferStateMachine.Hop, forRest: Bool = false) {
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
        head = ResponseHead()
        decoder = nil
        blockCount = 0
        taken = 0
        pieces = (0, 0)
        hasYielded = false
        easy.clearError()
        easy.set(CURLOPT_URL, hop.location.url)
        let own = hop.carriesCredentials
        // Of the URL that is configured: a redirect within the origin keeps it.
        easy.set(CURLOPT_USERNAME, own ? configured.user : nil)
        easy.set(CURLOPT_PASSWORD, own ? configured.password : nil)
        easy.setProof(own ? proof : nil)
        if source.certificateAuthority != nil || options.certificateAuthorities != nil {
            easy.setAuthorities((own ? source.certificateAuthority : nil) ?? options.certificateAuthorities)
        }
        // A secret that goes over plain http goes to this machine, which needs no proxy: one would read it on the way.
        let isPrivate = own && (source.isPrivate || configured.user != nil)
        let staysHere = isPrivate && source.isLocal && hop.location.origin.scheme == "http"
        easy.set(CURLOPT_NOPROXY, staysHere || source.unixSocket != nil ? "*" : nil)
        var lines = own ? fields : []
        if hop.sendsBody, case .post(let text, let contentType) = source.method {
            easy.setBody(text)
            // Without a value it takes away what libcurl would say by itself.
            lines.append(text.isEmpty ? "Content-Type:" : "Content-Type: \(contentType)")
        } else {
            easy.setBody(nil)
        }
        if let partial {
            lines += partial.fields(from: offset)
        } else if !hop.sendsBody, hop.isConditional {
            // A POST cannot ask whether something changed: its answer would be 412 (RFC 9110, 13.1).
            if let tag = validators?.entityTag { lines.append("If-None-Match: \(tag)") }
            if let date = validators?.lastModified { lines.append("If-Modified-Since: \(date)") }
        }
        easy.setHeaders(lines)
        if purpose == .data { easy.set(CURLOPT_FRESH_CONNECT, hop.wantsNewConnection ? 1 : 0) }
    }

    // MARK: The connection

    /// libcurl's callback before a request is written: whether the connection may carry it.
    ///
    /// - Parameters:
    ///   - address: the one that is connected to, which may be a proxy's.
    ///   - localPort: 0: the connection has none.
    private func mayAsk(at address: String, from localPort: Int32) -> Bool {
        if easy.number(CURLINFO_NUM_CONNECTS) > 0 {
            sockets?.learn(localPort: localPort)
        } else if easy.hasPendingInput || sockets?.hasInput(localPort: localPort) ?? true {
            // An answer that comes before its request would be taken for the answer to it.
            stop = .connectionNotIdle
            return false
        }
        let reach = AddressClass(of: address)
        guard let first = firstReach else {
            firstReach = reach
            return true
        }
        guard reach <= first else {
            stop = .privateAddress(address, reach)
            return false
        }
        return true
    }

    // MARK: The answer

    /// libcurl's header callback: a line of the head, or of the trailers. Anything but its length ends the request.
    private func receive(line: UnsafeRawBufferPointer) -> Int {
        do throws(ResponseHead.Violation) {
            try head.take(line)
            return line.count
        } catch {
            stop = .violation(error)
            return 0
        }
    }

    /// libcurl's write callback: a piece of the body. Anything but its length ends the request, or holds it up until
    /// ``ConnectionPool/resume(_:)``: then the piece comes again.
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
        /// ``stop`` says why.
        case end
    }

    /// Bounds what pieces without content cost: chunks of a few bytes, or a compressed body that becomes nothing. Nil: the
    /// piece is to be taken.
    private func count(_ piece: UnsafeRawBufferPointer) -> PieceAction? {
        guard pieces.count < Self.piecesPerTurn else {
            pieces.count = 0
            hasYielded = true
            yieldTurn()
            return .pause
        }
        pieces.count += 1
        // The rest of one that comes again was counted.
        guard taken == 0 && blockCount == 0 else { return nil }
        pieces.bytes += piece.count
        // Compression makes a body longer by a thousandth at most.
        guard decoder == nil || UInt64(pieces.bytes) <= maxBytes + maxBytes / 64 + UInt64(Self.blockSize) else {
            stop = .tooLarge(announced: nil)
            return .end
        }
        return nil
    }

    /// Puts bytes of the decoded body into the spool.
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

    /// Whether libcurl was told to wait and need not any more.
    func unpause() -> Bool {
        defer { hasYielded = false }
        return spool.unpause() || hasYielded
    }

    /// Keeps who waits for a piece or the end. One of them may have come between the look and this: to wait is to suspend,
    /// and a suspension may let others run first.
    func wait(_ waiter: CheckedContinuation<Void, Never>) {
        guard !spool.hasPiece, result == nil else { return waiter.resume() }
        self.waiter = waiter
    }

    /// Has its task look what is new.
    func wake() {
        waiter?.resume()
        waiter = nil
    }

    /// Looks at what was said about the body before its first piece is taken.
    private func begin() {
        let status = easy.number(CURLINFO_RESPONSE_CODE)
        takesBody = purpose == .data && (200..<300).contains(status)
        guard takesBody else { return }
        if partial != nil {
            if status == 206 { return checkRest() }
            // The whole again, since it is another one by now, or the origin would not divide it.
            partial = nil
            spool.restart()
        }
        expected = nil
        if let refusal, let fault = faultOfType(refusal) {
            stop = .refused(fault)
            return
        }
        do throws(ContentDecoder.Failure) {
            decoder = try ContentDecoder.forCoding(head.list("content-encoding"))
        } catch {
            stop = .undecodable(error)
            return
        }
        guard let length = easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T) else { return }
        // The length of a compressed body says little about what it becomes.
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

    /// What is wrong with the media type of an answer that would be taken.
    private func faultOfType(_ refusal: (String?) -> RunFailure?) -> RunFailure? {
        let answer = lastAnswer()
        guard case .content = answer.meaning(now: 0) else { return nil }
        return refusal(answer.mediaType)
    }

    /// Refuses a 206 that is not the rest of what is at hand.
    private func checkRest() {
        guard
            let fault = partial?.fault(
                inContentRange: head["content-range"], entityTag: head.token("etag"),
                contentEncoding: head["content-encoding"], from: offset)
        else { return }
        stop = .wrongRest(
            RunFailure(
                .content,
                "the connection to \(host) broke, and what it sent as the rest of the body is not that: \(fault)"))
    }

    /// The host that is asked, for people.
    private var host: String {
        let name = hop?.location.origin.hostForPeople ?? source.host
        return source.unixSocket.map { "\(name) at \($0)" } ?? name
    }

    /// How the hop that libcurl has just ended fits into the transfer.
    func hopEnd(_ code: CURLcode) -> TransferStateMachine.HopEnd {
        guard purpose == .data else { return .final }
        if case .connectionNotIdle = stop { return .connectionUnusable }
        if hasAnswer(code), isConditionRejected { return .conditionRejected }
        guard hasAnswer(code) else { return isRestWanted(code) ? .broken(at: spool.count) : .final }
        if isRest { return isRestWanted(code) ? .broken(at: spool.count) : .final }
        let status = easy.number(CURLINFO_RESPONSE_CODE)
        guard HTTPAnswer.isRedirect(status), let reference = head["location"], !reference.isEmpty
        else { return .final }
        return .redirect(status: status, to: reference)
    }

    /// Whether the origin may have rejected the request for its conditions: a field that is too long for it, or has
    /// characters that it does not take, gets one of these answers. Without them the request may succeed.
    private var isConditionRejected: Bool {
        guard validators != nil, partial == nil, let hop, hop.isConditional, !hop.sendsBody else { return false }
        return head.status == 400 || head.status == 431
    }

    /// Whether it is known that the whole body came, or somebody else finds that out.
    private var isEndCertain: Bool { !head.isUnframed || isProven || source.allowsUnframed }

    /// The hop has a connection, so that its request is on the way.
    var isConnected: Bool { (easy.offset(CURLINFO_PRETRANSFER_TIME_T) ?? 0) > 0 }

    /// Whether the answer is the rest of a body, a part of it at least.
    private var isRest: Bool { partial != nil && easy.number(CURLINFO_RESPONSE_CODE) == 206 }

    /// Whether the connection broke in a body whose rest can be asked for, or brought less than the rest.
    private func isRestWanted(_ code: CURLcode) -> Bool {
        switch code {
        case CURLE_OK, CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_OPERATION_TIMEDOUT: break
        default: return false
        }
        guard stop == nil, takesBody, hop?.sendsBody == false, spool.count >= PartialBody.minimum else { return false }
        if partial == nil {
            partial = PartialBody(
                of: lastAnswer(),
                PartialBody.Fields(
                    contentEncoding: head["content-encoding"], acceptRanges: head["accept-ranges"]),
                announced: easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T))
        }
        guard let partial else { return false }
        return UInt64(spool.count) < partial.total
    }

    /// The answer of a request for a status. It is whole before the outcome is told; nil: there was none.
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
                    .failed(RunFailure(.transient, "\(host) sent something before it was asked")))
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
        let answer = lastAnswer()
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
            let validators = validators(of: answer, now: now)
            return .success(.notModified(validators.isEmpty ? nil : validators, freshFor: freshness(now: now)))
        case .failure(let failure):
            return .failure(.failed(failure))
        }
    }

    /// What the last hop's answer says.
    private func lastAnswer() -> HTTPAnswer {
        HTTPAnswer(
            status: easy.number(CURLINFO_RESPONSE_CODE), host: host, contentType: head["content-type"],
            entityTag: head.token("etag"), lastModified: head.token("last-modified"), date: head["date"],
            retryAfter: head["retry-after"],
            wasConditional: validators != nil && partial == nil && hop?.sendsBody == false
                && hop?.isConditional == true,
            wasForRest: partial != nil,
            identity: hop?.carriesCredentials == false
                ? .withheld : .own(credentials: source.headers.compactMap(\.credential)))
    }

    /// The body that came in several parts.
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

    /// The answer with what of the body nobody has taken.
    private func content(of answer: HTTPAnswer, now: Int64) -> Result<FetchResult, FetchError> {
        .success(
            .content(
                FetchedContent(
                    bytes: spool.takeRest(), mediaType: answer.mediaType,
                    validators: validators(of: answer, now: now), freshFor: freshness(now: now),
                    links: head.values(of: "link", atMost: Self.linkLimit),
                    location: hop?.location.url)))
    }

    /// What the next request for the configured URL may ask with: none of another URL.
    private func validators(of answer: HTTPAnswer, now: Int64) -> Validators {
        hop?.isRedirected == true ? Validators() : answer.validators(received: now)
    }

    /// How much longer the answer is fresh by its own word.
    private func freshness(now: Int64) -> Duration? {
        OriginFreshness(
            cacheControl: head.list("cache-control"), expires: head["expires"], date: head["date"],
            age: head["age"]
        ).remaining(after: .microseconds(Int64(clamping: easy.offset(CURLINFO_TOTAL_TIME_T) ?? 0)), now: now)
    }

    /// Whether the answer as far as it matters is there: wholly, or its body was not worth the while.
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
