import CCurl
package import FreshetEventLoop
package import FreshetPipelines
import Glibc
import Synchronization

/// Asks origins over HTTP/1.1: libcurl, driven by the event loop.
///
/// Not over HTTP/2: libcurl handles frames without content for as long as they come, so that one connection with endless
/// empty frames would keep the loop for itself; and a stream that its origin resets without an error passes as a whole body.
///
/// It lives on its loop's thread; its methods may be called from anywhere. Connections are kept between requests of one
/// network epoch (``beginEpoch(_:)``) and closed after ``Options/idleLifetime`` without any, so that an idle client
/// holds no socket and no memory of libcurl's.
///
/// - Certificates are checked against the system's authorities, or the source's own. Proxies are taken from the environment
///   (`http_proxy`, `https_proxy`, `no_proxy` …).
/// - A long body whose connection breaks is continued where it broke, if it is certainly the same (``PartialBody``).
/// - Redirects are followed within `http` and `https`, never from `https` to `http`; the configuration's header fields
///   and their credentials go to the configured origin only, and a credential goes over plain `http` to this machine
///   only.
package actor HTTPClient {
    /// What is the same for all requests of a client.
    package struct Options: Hashable, Sendable {
        /// The `User-Agent` field.
        package var userAgent: String
        /// A file of PEM certificates that takes the place of the system's bundle; nil: the system's.
        package var certificateAuthorities: String?
        /// The longest that it may take to resolve the name, to connect and to shake hands.
        package var connectTimeout: Duration
        /// The longest that an origin may send nothing, in whole seconds.
        package var stallLimit: Duration
        /// How long connections are kept when no request is under way: long enough for a burst of pipelines.
        package var idleLifetime: Duration

        package static let defaultUserAgent = "freshet/0.1.0"

        package init(
            userAgent: String = Options.defaultUserAgent, certificateAuthorities: String? = nil,
            connectTimeout: Duration = .seconds(10), stallLimit: Duration = .seconds(30),
            idleLifetime: Duration = .seconds(60)
        ) {
            self.userAgent = userAgent
            self.certificateAuthorities = certificateAuthorities
            self.connectTimeout = connectTimeout
            self.stallLimit = stallLimit
            self.idleLifetime = idleLifetime
        }
    }

    private let loop: EventLoop
    let options: Options
    private let cancellations: CancellationBox
    /// The secrets that header fields may name.
    private var credentials: [String: String] = [:]
    /// The files of credentials that client certificates may name.
    private var credentialFiles: [String: String] = [:]
    private var epoch: UInt64 = 0
    /// By serial number: the present one, and those of earlier epochs whose requests have not ended.
    var pools: [UInt64: ConnectionPool] = [:]
    private var present: UInt64?
    private var lastSerial: UInt64 = 0
    var exchanges: [UInt64: HTTPExchange] = [:]
    private var lastExchange: UInt64 = 0
    private var idleTimer: LoopTimer?
    /// Handles of requests that have ended, with their buffers, for those to come; they go with the last connections.
    private var spareHandles: [EasyHandle] = []
    /// As many as requests may well be under way at once; each has about 25 KiB.
    static let maxSpareHandles = 64

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(_ loop: EventLoop, options: Options = Options()) {
        initializeCurl()
        self.loop = loop
        self.options = options
        cancellations = CancellationBox()
        cancellations.connect(loop) { [weak self] identifiers in
            self?.assumeIsolated { client in
                for identifier in identifiers { client.cancel(identifier) }
            }
        }
    }

    /// Gives it the secrets by their names, and the paths of credentials that are files, instead of those before.
    /// Requests that begin from now on use them.
    package func use(_ credentials: [String: String], files: [String: String] = [:]) {
        self.credentials = credentials
        credentialFiles = files
    }

    // MARK: Epochs

    /// Begins a network epoch: idle connections and name-service answers from before are dropped. Requests under way
    /// end on the connections that they have. An epoch that is not newer than the present one changes nothing.
    package func beginEpoch(_ number: UInt64) {
        guard number > epoch else { return }
        epoch = number
        guard let old = present else { return }
        present = nil
        closeIfIdle(old)
    }

    /// Pools that exist, for tests: the present one and those that still have requests under way.
    var poolCount: Int { pools.count }
    /// Requests that have begun and not ended, for tests.
    var openRequests: Int { exchanges.count }
    /// Hops that libcurl was given, for tests.
    private(set) var startedHops = 0

    // MARK: Requests

    /// Asks a source once, follows its redirects, and answers when all is there. A long body goes where the request says,
    /// if it says so.
    ///
    /// A request whose epoch is newer than the client's begins that epoch; one that is older uses the present
    /// connections, which are at least as fresh. Cancelling the task ends the request: when this has thrown, its
    /// connection is closed.
    package func fetch(
        _ source: HTTPSource, for request: FetchRequest
    ) async throws(FetchError) -> FetchResult {
        guard !Task.isCancelled else { throw .cancelled }
        guard let location = Location(source.url) else {
            throw .failed(RunFailure(.local, "the source's URL at \(source.host) is not an http or https URL"))
        }
        let fields: [String]
        let proof: ClientIdentity?
        do throws(RunFailure) {
            fields = try source.fields(with: credentials)
            proof = try source.clientCertificate.map { certificate throws(RunFailure) in
                try ClientIdentity(certificate, in: credentialFiles, for: source)
            }
        } catch {
            throw .failed(error)
        }
        guard let easy = takeHandle() else { throw .failed(Self.noMemory) }
        let exchange = HTTPExchange(easy, request, source, at: location, fields: fields, proof: proof, options: options)
        return try await perform(exchange, epoch: request.epoch).get()
    }

    /// Makes a request and awaits its outcome; when its task is cancelled it ends first.
    func perform(_ exchange: HTTPExchange, epoch: UInt64) async -> Result<FetchResult, FetchError> {
        beginEpoch(epoch)
        lastExchange += 1
        let identifier = lastExchange
        exchanges[identifier] = exchange
        exchange.yieldTurn = { [weak self, loop] in
            loop.perform(named: "HTTP") { [weak self] in self?.assumeIsolated { $0.goOn(identifier) } }
        }
        let cancellations = cancellations
        let result = await withTaskCancellationHandler {
            start(exchange)
            return await follow(exchange)
        } onCancel: {
            cancellations.add(identifier)
        }
        exchanges[identifier] = nil
        recycle(exchange.easy)
        return result
    }

    /// Nil when memory has run out.
    func takeHandle() -> EasyHandle? { spareHandles.popLast() ?? EasyHandle() }

    /// Keeps a handle for the next request. It is reset first: nothing of one request may show in another.
    private func recycle(_ easy: EasyHandle) {
        guard spareHandles.count < Self.maxSpareHandles, present != nil else { return }
        easy.reset()
        spareHandles.append(easy)
    }

    private func start(_ exchange: HTTPExchange) {
        switch exchange.machine.start() {
        case .request(let hop): send(exchange, hop)
        case .answerCancelled: answer(exchange, .failure(.cancelled))
        }
    }

    private func cancel(_ identifier: UInt64) {
        guard let exchange = exchanges[identifier] else { return }
        abandon(exchange, .cancelled)
    }

    /// Ends a request that is under way. One that ended first, or has not begun and will see it, is left alone.
    func abandon(_ exchange: HTTPExchange, _ error: FetchError) {
        switch exchange.machine.cancel() {
        case .abandonAndAnswerCancelled:
            pools[exchange.pool]?.remove(exchange)
            answer(exchange, .failure(error))
            closeIfIdle(exchange.pool)
        case .none:
            break
        }
    }

    private func send(_ exchange: HTTPExchange, _ hop: TransferStateMachine.Hop, forRest: Bool = false) {
        exchange.prepare(hop, forRest: forRest)
        guard let (serial, pool) = presentPool() else { return refuse(exchange, Self.noMemory) }
        exchange.pool = serial
        if start(exchange, in: pool) { exchange.asked() }
    }

    /// Whether libcurl takes the request; if not, it has its answer.
    @discardableResult
    func start(_ exchange: HTTPExchange, in pool: ConnectionPool) -> Bool {
        startedHops += 1
        let code = pool.start(exchange)
        guard code == CURLM_OK else {
            let reason = String(cString: curl_multi_strerror(code))
            refuse(
                exchange, RunFailure(.local, "libcurl does not take the request to \(exchange.source.host): \(reason)"))
            return false
        }
        return true
    }

    private func refuse(_ exchange: HTTPExchange, _ failure: RunFailure) {
        // The machine has to know that the hop is over, whatever it would do next.
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
            // All of them before anything comes of one.
            var ended: [(HTTPExchange, CURLcode)] = []
            while let next = pool.takeEnded() { ended.append(next) }
            guard !ended.isEmpty else { break }
            for (exchange, code) in ended { hopEnded(exchange, code) }
        }
        closeIfIdle(serial)
    }

    /// Goes on with a body whose decoding was interrupted.
    private func goOn(_ identifier: UInt64) {
        guard let exchange = exchanges[identifier] else { return }
        let serial = exchange.pool
        resume(exchange)
        if let pool = pools[serial] { harvest(serial, pool) }
    }

    /// Goes on after a hop that has been taken out of its pool.
    func hopEnded(_ exchange: HTTPExchange, _ code: CURLcode) {
        switch exchange.machine.hopEnded(exchange.hopEnd(code)) {
        case .request(let hop): send(exchange, hop)
        case .requestRest(let hop): send(exchange, hop, forRest: true)
        case .answer: answer(exchange, exchange.outcome(code, now: Int64(time(nil))))
        case .fail(let failure): answer(exchange, .failure(.failed(failure)))
        }
    }

    // MARK: Pools

    private func presentPool() -> (UInt64, ConnectionPool)? {
        if let present, let pool = pools[present] { return (present, pool) }
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
        guard let pool else { return nil }
        pools[serial] = pool
        present = serial
        return (serial, pool)
    }

    /// Closes an idle pool: at once if its epoch is over, else when nobody has used it for a while.
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
        spareHandles = []
    }

    static let noMemory = RunFailure(.local, "memory has run out")
}

/// Cancelled requests on their way to the loop: a task may be cancelled on any thread, also within a callback of
/// libcurl's, where no request can be taken away.
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
        // One that is due already comes on the loop's next turn.
        timer?.arm(at: .now)
    }

    private func take() -> [UInt64] {
        state.withLock { state in
            defer { state.identifiers.removeAll() }
            return state.identifiers
        }
    }
}
