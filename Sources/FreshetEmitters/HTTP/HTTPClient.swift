import CCurl
package import FreshetEventLoop
import FreshetModel
package import FreshetPipelines
import Glibc
import Synchronization

/// Sends requests to origins over HTTP/1.1, with libcurl on the event loop.
///
/// It does not use HTTP/2: libcurl processes frames without content for as long as they arrive, so one connection with
/// endless empty frames would block the loop; and a stream that its origin resets without an error looks like a
/// complete body.
///
/// It is isolated to its loop's thread; its methods may be called from any thread. Connections are kept between
/// requests of one network epoch (``beginEpoch(_:)``) and closed after ``Options/idleLifetime`` without requests, so
/// that an idle client holds no sockets and no memory of libcurl.
///
/// - Certificates are checked against the system's authorities, or the source's authorities. Proxies come from the
///   environment (`http_proxy`, `https_proxy`, `no_proxy` …).
/// - A long body whose connection breaks is continued at that point if it is certainly the same body (``PartialBody``).
/// - Redirects are followed within `http` and `https`, never from `https` to `http`. The configuration's header fields
///   and their credentials are sent to the configured origin only, and credentials are sent over plain `http` to this
///   machine only.
package actor HTTPClient {
    /// Options for all requests of a client.
    package struct Options: Hashable, Sendable {
        /// The `User-Agent` field.
        package var userAgent: String
        /// A file of PEM certificates that replaces the system's bundle; nil for the system's bundle.
        package var certificateAuthorities: String?
        /// The URL of a proxy; nil: that of the environment.
        package var proxy: String?
        /// The most time to resolve the name, to connect and for the handshake.
        package var connectTimeout: Duration
        /// The most time without data from the origin, in whole seconds.
        package var stallLimit: Duration
        /// How long connections are kept when no request is in progress: long enough for a burst of pipelines.
        package var idleLifetime: Duration

        package static let defaultUserAgent = "freshet/0.1.0"

        package init(
            userAgent: String = Options.defaultUserAgent, certificateAuthorities: String? = nil,
            proxy: String? = nil, connectTimeout: Duration = .seconds(10), stallLimit: Duration = .seconds(30),
            idleLifetime: Duration = .seconds(60)
        ) {
            self.userAgent = userAgent
            self.certificateAuthorities = certificateAuthorities
            self.proxy = proxy
            self.connectTimeout = connectTimeout
            self.stallLimit = stallLimit
            self.idleLifetime = idleLifetime
        }
    }

    private let loop: EventLoop
    let options: Options
    private let cancellations: CancellationBox
    /// Reads secrets again; nil: the secrets stay as ``use(_:files:)`` has set them.
    let secretReader: (any SecretReading)?
    /// The secrets of credentials, by name, for header fields.
    var credentials: [String: String] = [:]
    /// The access tokens by their keys (``OAuth2Client/key(withSecret:)``).
    var tokens: [String: TokenBroker] = [:]
    /// The files of credentials, by name, for client certificates.
    private var credentialFiles: [String: String] = [:]
    private var epoch: UInt64 = 0
    /// The pools by serial number: the present pool, and pools of earlier epochs with requests in progress.
    var pools: [UInt64: ConnectionPool] = [:]
    private var present: UInt64?
    private var lastSerial: UInt64 = 0
    var exchanges: [UInt64: HTTPExchange] = [:]
    private let lookups = LookupLimiter()
    private var locations = LocationCache()
    private var lastExchange: UInt64 = 0
    private var idleTimer: LoopTimer?
    /// The idle pools of earlier epochs, which ``tidy()`` closes.
    private var retired: [UInt64] = []
    /// The next pool, so that the first request of an epoch does not wait until libcurl has made its tables. It has no
    /// connection.
    private var spare: (serial: UInt64, pool: ConnectionPool)?
    /// The handle of that request: libcurl makes it as slowly as it connects.
    private var spareHandle: EasyHandle?
    /// Whether there is a spare handle, for tests.
    var hasSpareHandle: Bool { spareHandle != nil }
    /// The number of handles that were made when a request began, for tests.
    private(set) var handlesMadeForRequests = 0
    private var tidyTimer: LoopTimer?
    /// Loads libcurl.
    private lazy var loader = WorkerPool(threads: 1)

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(_ loop: EventLoop, options: Options = Options(), secretReader: (any SecretReading)? = nil) {
        self.loop = loop
        self.secretReader = secretReader
        self.options = options
        cancellations = CancellationBox()
        cancellations.connect(loop) { [weak self] identifiers in
            self?.assumeIsolated { client in
                for identifier in identifiers { client.cancel(identifier) }
            }
        }
    }

    /// Replaces the credentials: secrets by name, and paths of credential files by name. Requests that begin later use
    /// them.
    package func use(_ credentials: [String: String], files: [String: String] = [:]) {
        self.credentials = credentials
        credentialFiles = files
    }

    // MARK: Epochs

    /// Begins a network epoch: idle connections and name-service answers of earlier epochs are dropped. Requests in
    /// progress end on their present connections. An epoch that is not newer than the present epoch is ignored.
    package func beginEpoch(_ number: UInt64) {
        guard number > epoch else { return }
        epoch = number
        guard let old = present else { return }
        present = nil
        guard pools[old]?.isIdle == true else { return }
        // No request gets these connections any more. Closing them takes as long as making a request, so the requests
        // that follow immediately, such as those of the signal `network`, begin before.
        retired.append(old)
        tidySoon()
    }

    /// Calls ``tidy()`` in the loop's next iteration, after the requests that begin now.
    private func tidySoon() {
        let timer =
            tidyTimer ?? LoopTimer(loop, named: "HTTP") { [weak self] in self?.assumeIsolated { $0.tidy() } }
        tidyTimer = timer
        timer.arm(at: .now)
    }

    /// Closes idle pools of earlier epochs, and makes the spare one and the spare handle.
    private func tidy() {
        for serial in retired { closeIfIdle(serial) }
        retired = []
        if spare == nil { spare = makePool() }
        if spareHandle == nil { spareHandle = EasyHandle() }
    }

    /// The number of pools, for tests: the present pool and pools with requests in progress.
    var poolCount: Int { pools.count }
    /// The number of requests in progress, for tests.
    var openRequests: Int { exchanges.count }
    /// The number of hops that were started, for tests.
    private(set) var startedHops = 0

    // MARK: Requests

    /// Waits until libcurl is loaded. Another thread loads it: that takes longer than a job of the loop may. Meanwhile
    /// glibc's lock of its list of libraries is held, so the loop waits if it starts a thread (pthread_create(3)). If the
    /// library cannot be loaded, the next request tries again, so it works when the library is installed.
    func awaitLibrary() async throws(FetchError) {
        guard !CurlLibrary.isLoaded else { return }
        let outcome = Outcome<Void>()
        loader.perform("libcurl") {
            outcome.settle(CurlLibrary.load().map { .failure(.failed($0)) } ?? .success(()))
        }
        try await outcome.value.get()
    }

    /// Fetches a source once, follows its redirects, and returns when the answer is complete. A long body is written to
    /// the request's body store, if it has one.
    ///
    /// A request whose epoch is newer than the client's epoch begins that epoch; a request of an older epoch uses the
    /// present connections. Cancelling the task ends the request: its connection is closed when this throws.
    ///
    /// If the origin refuses the request's secret (401 or 403), the secret is read again. If it has changed, the
    /// request is made once more. Another origin, to which a redirect has led, never gets the secret, so its refusal
    /// changes nothing.
    package func fetch(
        _ source: HTTPSource, for request: FetchRequest
    ) async throws(FetchError) -> FetchResult {
        try await fetch(source, for: request, as: request.isBeside ? .beside : .source)
    }

    /// - Parameter role: the role of the request.
    func fetch(
        _ source: HTTPSource, for request: FetchRequest, as role: RequestRole
    ) async throws(FetchError) -> FetchResult {
        guard source.headers.contains(where: { $0.credential != nil }) else {
            return try await fetchOnce(source, for: request, as: role, [:]).result.get()
        }
        let secrets = try await secrets(of: source, for: request)
        let answer = try await fetchOnce(source, for: request, as: role, secrets)
        guard let status = answer.refusal, let renewed = await renewed(secrets, after: status, of: source, for: request)
        else { return try answer.result.get() }
        return try await fetchOnce(source, for: request, as: role, renewed).result.get()
    }

    /// - Parameter secrets: the values of secret header fields, by their keys.
    /// - Returns: the result; and the status with which the origin refused the secrets, 401 or 403. Nil: the origin did
    ///   not refuse them, or they were not sent to the origin that answered.
    private func fetchOnce(
        _ source: HTTPSource, for request: FetchRequest, as role: RequestRole, _ secrets: [String: String]
    ) async throws(FetchError) -> (result: Result<FetchResult, FetchError>, refusal: Int?) {
        // libcurl parses the URL, too.
        try await awaitLibrary()
        guard !Task.isCancelled else { throw .cancelled }
        guard let location = locations[source.url] else {
            throw .failed(RunFailure(.local, "\(role.url) at \(source.host) is not an http or https URL"))
        }
        let fields: [String]
        let proof: ClientIdentity?
        do throws(RunFailure) {
            fields = try source.fields(with: secrets)
            proof = try source.clientCertificate.map { certificate throws(RunFailure) in
                try ClientIdentity(certificate, in: credentialFiles, for: source)
            }
        } catch {
            throw .failed(error)
        }
        guard let easy = makeHandle(epoch: request.epoch) else { throw .failed(Self.noMemory) }
        let validators = request.validators.map { ResponseValidators.sendable($0, now: Int64(time(nil))) }
        let exchange = HTTPExchange(
            easy,
            HTTPRequest(
                role: role, source: source, location: location, options: options, fields: fields, proof: proof,
                requestsCoding: request.coding == .requested,
                validators: validators.flatMap { $0.isEmpty ? nil : $0 }),
            for: request)
        let result = await perform(exchange, epoch: request.epoch)
        guard case .failure(.failed(let failure)) = result, let status = failure.status, status == 401 || status == 403,
            exchange.hop?.carriesCredentials == true
        else { return (result, nil) }
        return (result, status)
    }

    /// The spare handle for the first request of an epoch, a new one for others; nil: out of memory.
    private func makeHandle(epoch number: UInt64) -> EasyHandle? {
        let isFirst = present == nil || number > epoch
        if isFirst, let handle = spareHandle.take() { return handle }
        handlesMadeForRequests += 1
        return EasyHandle()
    }

    /// Makes a request and awaits its outcome. If the task is cancelled, the request ends first.
    func perform(_ exchange: HTTPExchange, epoch: UInt64) async -> Result<FetchResult, FetchError> {
        beginEpoch(epoch)
        lastExchange += 1
        let identifier = lastExchange
        exchanges[identifier] = exchange
        exchange.lookups = lookups
        exchange.body.yieldTurn = { [weak self, loop] in
            loop.perform(named: "HTTP") { [weak self] in self?.assumeIsolated { $0.goOn(identifier) } }
        }
        let cancellations = cancellations
        let result = await withTaskCancellationHandler {
            start(exchange)
            begin(exchange)
            return await follow(exchange)
        } onCancel: {
            cancellations.add(identifier)
        }
        exchanges[identifier] = nil
        return result
    }

    private func start(_ exchange: HTTPExchange) {
        switch exchange.machine.start() {
        case .request(let hop): send(exchange, hop)
        case .answerCancelled: answer(exchange, .failure(.cancelled))
        }
    }

    /// Lets libcurl connect now, not when its timer of 0 ms expires in the loop's next iteration.
    private func begin(_ exchange: HTTPExchange) {
        guard exchange.result == nil, let pool = pools[exchange.pool] else { return }
        pool.timeIsUp()
        harvest(exchange.pool, pool)
    }

    private func cancel(_ identifier: UInt64) {
        guard let exchange = exchanges[identifier] else { return }
        abandon(exchange, .cancelled)
    }

    /// Ends a request in progress. Nothing happens if the request has ended, or has not begun and detects the
    /// cancellation itself.
    func abandon(_ exchange: HTTPExchange, _ error: FetchError) {
        switch exchange.machine.cancel() {
        case .abandonAndAnswerCancelled:
            lookups.ended(exchange)
            pools[exchange.pool]?.remove(exchange)
            answer(exchange, .failure(error))
            closeIfIdle(exchange.pool)
        case .none:
            break
        }
    }

    private func send(_ exchange: HTTPExchange, _ hop: TransferStateMachine.Hop, forRest: Bool = false) {
        guard exchange.prepare(hop, forRest: forRest), let (serial, pool) = presentPool() else {
            return refuse(exchange, Self.noMemory)
        }
        exchange.pool = serial
        if start(exchange, in: pool) { exchange.fetch.asked() }
    }

    /// Starts the request. Returns false if libcurl did not accept it; the exchange then has a failure as its result.
    @discardableResult
    func start(_ exchange: HTTPExchange, in pool: ConnectionPool) -> Bool {
        startedHops += 1
        let code = pool.start(exchange)
        guard code == CURLM_OK else {
            let reason = String(cString: curl_multi_strerror(code))
            refuse(
                exchange,
                RunFailure(.local, "libcurl rejected the request to \(exchange.request.source.host): \(reason)"))
            return false
        }
        return true
    }

    private func refuse(_ exchange: HTTPExchange, _ failure: RunFailure) {
        // The state machine must know that the hop has ended; its next action is not needed.
        _ = exchange.machine.hopEnded(.final)
        answer(exchange, .failure(.failed(failure)))
    }

    private func answer(_ exchange: HTTPExchange, _ result: Result<FetchResult, FetchError>) {
        exchange.result = result
        exchange.wake()
    }

    /// Handles all requests of a pool that have ended.
    private func harvest(_ serial: UInt64, _ pool: ConnectionPool) {
        while true {
            // All ended requests are removed before the first of them is handled.
            var ended: [(HTTPExchange, CURLcode)] = []
            while let next = pool.takeEnded() { ended.append(next) }
            guard !ended.isEmpty else { break }
            for (exchange, code) in ended { hopEnded(exchange, code) }
        }
        closeIfIdle(serial)
    }

    /// Continues a body whose processing yielded the loop.
    private func goOn(_ identifier: UInt64) {
        guard let exchange = exchanges[identifier] else { return }
        let serial = exchange.pool
        resume(exchange)
        if let pool = pools[serial] { harvest(serial, pool) }
    }

    /// Continues after a hop that has been removed from its pool.
    func hopEnded(_ exchange: HTTPExchange, _ code: CURLcode) {
        if code == CURLE_OPERATION_TIMEDOUT { lookups.ended(exchange) }
        let now = Int64(time(nil))
        switch exchange.machine.hopEnded(exchange.hopEnd(code, now: now)) {
        case .request(let hop): send(exchange, hop)
        case .requestRest(let hop): send(exchange, hop, forRest: true)
        case .answer: answer(exchange, exchange.outcome(code, now: now))
        case .fail(let failure): answer(exchange, .failure(.failed(failure)))
        }
    }

    // MARK: Pools

    private func presentPool() -> (UInt64, ConnectionPool)? {
        if let present, let pool = pools[present] { return (present, pool) }
        guard let (serial, pool) = spare ?? makePool() else { return nil }
        spare = nil
        tidySoon()
        pools[serial] = pool
        present = serial
        return (serial, pool)
    }

    private func makePool() -> (serial: UInt64, pool: ConnectionPool)? {
        lastSerial += 1
        let serial = lastSerial
        let pool = ConnectionPool(loop) { [weak self] descriptor, readiness in
            self?.assumeIsolated { client in
                guard let pool = client.pools[serial] else { return }
                pool.socket(descriptor, is: readiness)
                client.harvest(serial, pool)
            }
        } onTimer: { [weak self] in
            self?.assumeIsolated { client in
                guard let pool = client.pools[serial] else { return }
                pool.timeIsUp()
                client.harvest(serial, pool)
            }
        }
        return pool.map { (serial, $0) }
    }

    /// Closes an idle pool: immediately if its epoch has ended, otherwise after ``Options/idleLifetime`` without
    /// requests.
    func closeIfIdle(_ serial: UInt64) {
        guard let pool = pools[serial], pool.isIdle else { return }
        guard serial == present else {
            pools[serial] = nil
            return
        }
        let timer: LoopTimer
        if let idleTimer {
            timer = idleTimer
        } else {
            timer = LoopTimer(loop, named: "HTTP") { [weak self] in
                self?.assumeIsolated { $0.closePresentPoolIfIdle() }
            }
            idleTimer = timer
        }
        timer.arm(at: .now + options.idleLifetime)
    }

    private func closePresentPoolIfIdle() {
        guard let serial = present, pools[serial]?.isIdle == true else { return }
        pools[serial] = nil
        present = nil
    }

    static let noMemory = RunFailure(.local, "out of memory")
}

/// Passes cancelled requests to the loop: a task may be cancelled on any thread, also within a callback of libcurl, in
/// which a request cannot be removed.
private final class CancellationBox: Sendable {
    private struct State {
        var identifiers: [UInt64] = []
        var timer: LoopTimer?
    }
    private let state = Mutex(State())

    func connect(_ loop: EventLoop, _ handler: @escaping @Sendable ([UInt64]) -> Void) {
        let timer = LoopTimer(loop, named: "HTTP") { [weak self] in
            guard let self else { return }
            handler(take())
        }
        state.withLock { $0.timer = timer }
    }

    func add(_ identifier: UInt64) {
        let timer = state.withLock { state in
            state.identifiers.append(identifier)
            return state.timer
        }
        // A timer that is due fires in the loop's next turn.
        timer?.arm(at: .now)
    }

    private func take() -> [UInt64] {
        state.withLock { state in
            defer { state.identifiers.removeAll() }
            return state.identifiers
        }
    }
}
