public import FreshetEventLoop
import Glibc
import Synchronization

/// Serves Varlink interfaces on a Unix socket.
///
/// ```swift
/// let listener = try VarlinkListener(path: "/run/example/org.example.greeter")
/// let server = try VarlinkServer(loop, listener, identity: identity, interfaces: [greeter])
/// try await server.run()      // until the task is cancelled
/// ```
///
/// Calls on one connection are answered one at a time, in their order; different connections are served concurrently.
/// Handlers run in child tasks of ``run()`` that prefer the loop; all of them have ended when `run()` returns.
public final class VarlinkServer: Sendable {
    /// The identity of the service, which `GetInfo` returns.
    public struct Identity: Hashable, Sendable {
        public var vendor: String
        public var product: String
        public var version: String
        public var url: String

        public init(vendor: String, product: String, version: String, url: String) {
            self.vendor = vendor
            self.product = product
            self.version = version
            self.url = url
        }
    }

    /// Limits that protect clients from each other.
    public struct Limits: Hashable, Sendable {
        /// The most concurrent connections. Beyond this limit, and beyond the limits below, another connection gives
        /// way to the newcomer. It is a connection of the user with the most connections: first a connection on which
        /// the server waits for the client, then one that follows events, then one with a call in progress. A
        /// privileged client never gives way to an unprivileged one. A newcomer whose user has as many connections as
        /// the others displaces only a connection of the same user. Calls in progress do not give way to a newcomer of
        /// the same user: it is turned away.
        public var clients = 256
        /// The most concurrent connections of one user. The limit does not apply to root.
        public var clientsPerUser = 32
        /// How many of ``clients`` are reserved for privileged clients, including root.
        public var clientsKeptForPrivileged = 32
        /// How many of ``clientsKeptForPrivileged`` are reserved for root, so that root can always inspect the service.
        public var clientsKeptForRoot = 8
        /// The most bytes of a message from a client.
        public var messageBytes = 65_536
        /// How long a connection may have no call before the server closes it, and how long a reply may wait until its
        /// client reads, also in the middle of a stream. The time of a handler does not count.
        public var silence: Duration = .seconds(30)
        /// The most bytes of all replies that wait until unprivileged clients read. Beyond this limit, the server
        /// closes the connections that have waited longest, except for the last such connection: it may have one long
        /// reply.
        public var pendingOutputBytes = 16 << 20

        public init() {}

        /// The share of the process's descriptors that clients may use: one in so many. The other descriptors are for
        /// the process's own work.
        static let descriptorShare = 4

        /// The same limits, with fewer clients if the process may open few descriptors.
        func with(descriptors: UInt64) -> Limits {
            let most = max(4, Int(clamping: descriptors / UInt64(Self.descriptorShare)))
            guard most < clients else { return self }
            var limits = self
            limits.clients = most
            limits.clientsKeptForPrivileged = min(clientsKeptForPrivileged, most / 4)
            limits.clientsKeptForRoot = min(clientsKeptForRoot, max(1, most / 8))
            return limits
        }

        /// The same limits, with fewer clients if this process may open few descriptors.
        func withinDescriptorLimit() -> Limits {
            var limit = rlimit()
            guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return self }
            return with(descriptors: UInt64(limit.rlim_cur))
        }
    }

    /// How many connections the server accepts before other work gets its turn.
    static let acceptsPerTurn = 16
    /// The pause after a failed accept(2), such as without memory: long enough not to keep the loop busy, short enough
    /// for users.
    static let acceptPause: Duration = .milliseconds(100)

    private struct State {
        var limiter: ConnectionLimiter
        /// The admitted connections.
        var connections: [ObjectIdentifier: VarlinkConnection] = [:]
        /// Nil when the server has stopped.
        var listener: VarlinkListener?
        /// Nil until ``run()`` listens, and when the server has stopped.
        var watch: DescriptorWatch?
        /// Passes accepted connections to ``run()``; nil when the server has stopped.
        var accepted: AsyncStream<VarlinkConnection>.Continuation?
        /// A reserve descriptor. If no descriptor is left, the server closes it for a moment, to accept and close a
        /// client in the queue; otherwise the loop would report that client again and again.
        var spare: OwnedDescriptor?
        var shortage = DescriptorShortage()
    }

    private let loop: EventLoop
    private let router: VarlinkRouter
    private let turns: FairScheduler
    private let limits: Limits
    private let rank: @Sendable (VarlinkPeer) -> ConnectionLimiter.Rank
    private let acceptClient: @Sendable (Int32) -> Int32
    private let state: Mutex<State>
    /// The accepted connections, for ``run()``.
    private let accepted: AsyncStream<VarlinkConnection>

    /// Creates a server on a listener. Clients wait in the kernel's queue until ``run()``.
    ///
    /// `org.varlink.service` is added to the interfaces.
    ///
    /// - Parameters:
    ///   - loop: the loop on whose thread the handlers run.
    ///   - listener: the socket that accepts the clients.
    ///   - identity: what `org.varlink.service.GetInfo` says about the service.
    ///   - interfaces: the service's interfaces with their methods.
    ///   - limits: the limits of connections and messages.
    ///   - isPrivileged: whether a client is admitted even if others use all connections, as root always is. The server
    ///     calls it on the loop, once for each client, so it must be fast.
    public convenience init(
        _ loop: EventLoop, _ listener: VarlinkListener, identity: Identity, interfaces: [VarlinkInterface],
        limits: Limits = Limits(), isPrivileged: @escaping @Sendable (VarlinkPeer) -> Bool = { _ in false }
    ) throws(VarlinkInterface.ValidationError) {
        try self.init(loop, listener, identity: identity, interfaces: interfaces, limits: limits) { peer in
            peer.user == 0 ? .root : isPrivileged(peer) ? .privileged : .unprivileged
        }
    }

    /// - Parameter acceptClient: accept(2) without an address; tests have their own.
    init(
        _ loop: EventLoop, _ listener: VarlinkListener, identity: Identity, interfaces: [VarlinkInterface],
        limits: Limits, rank: @escaping @Sendable (VarlinkPeer) -> ConnectionLimiter.Rank,
        acceptClient: @escaping @Sendable (Int32) -> Int32 = { Glibc.accept($0, nil, nil) }
    ) throws(VarlinkInterface.ValidationError) {
        let limits = limits.withinDescriptorLimit()
        self.loop = loop
        self.limits = limits
        self.rank = rank
        self.acceptClient = acceptClient
        turns = FairScheduler(loop)
        router = VarlinkRouter(interfaces + [try ServiceInterface.make(identity, interfaces: interfaces)])
        let continuation: AsyncStream<VarlinkConnection>.Continuation
        (accepted, continuation) = AsyncStream.makeStream(of: VarlinkConnection.self)
        state = Mutex(
            State(
                limiter: ConnectionLimiter(limits), listener: listener, accepted: continuation,
                spare: Self.makeSpare()))
    }

    /// The number of connections.
    public var clientCount: Int { state.withLock { $0.limiter.count } }

    /// The bytes of all replies that wait until their clients read.
    public var pendingOutputBytes: Int {
        state.withLock { state in state.connections.values.reduce(0) { $0 + $1.pendingOutput.bytes } }
    }

    /// Serves until the task is cancelled; then ends all connections and handlers, removes the socket, and returns.
    ///
    /// An inherited socket stays open: clients that connect later wait for the next process on it. Call this method
    /// only once.
    public func run() async throws(SystemCallError) {
        try listen()
        // Where the tasks run on the loop anyway, as in a process whose global executor is the loop, a preference would
        // only cost time: the runtime looks for it in each change of a function.
        await withTaskExecutorPreference(loop.isCurrent ? nil : loop) {
            await withDiscardingTaskGroup { group in
                for await connection in accepted {
                    group.addTask {
                        await connection.run()
                        self.leave(connection)
                    }
                }
                stopListening()
                group.cancelAll()
            }
        }
    }

    // MARK: Listening

    /// Whether the socket is still at its path; see ``VarlinkListener/isInPlace``.
    public var isInPlace: Bool { state.withLock { $0.listener }?.isInPlace ?? true }

    /// Accepts clients from another socket from now on, such as after the name of the first socket was removed.
    /// Existing connections stay open, and clients that wait for the first socket are answered; before ``run()``, they
    /// wait for it. After the end of ``run()`` it only closes the listener.
    public func change(to listener: VarlinkListener) throws(SystemCallError) {
        // run() does not listen yet: it will watch the newest listener.
        let unwatched = state.withLock { state -> VarlinkListener? in
            guard state.watch == nil, let replaced = state.listener else { return nil }
            state.listener = listener
            return replaced
        }
        if let unwatched { return acceptAll(from: unwatched) }
        guard state.withLock({ $0.listener != nil }) else { return listener.close() }
        let watch = try watch(listener)
        let before = state.withLock { state in
            defer { if state.listener != nil { (state.listener, state.watch) = (listener, watch) } }
            return (listener: state.listener, watch: state.watch)
        }
        before.watch?.cancel()
        guard let replaced = before.listener else {
            watch.cancel()
            return listener.close()
        }
        if replaced !== listener { acceptAll(from: replaced) }
    }

    /// Watches the newest listener.
    private func listen() throws(SystemCallError) {
        while let listener = state.withLock({ $0.listener }) {
            let watch = try watch(listener)
            let isNewest = state.withLock { state in
                guard state.listener === listener else { return false }
                state.watch = watch
                return true
            }
            guard !isNewest else { return }
            watch.cancel()
        }
    }

    private func watch(_ listener: VarlinkListener) throws(SystemCallError) -> DescriptorWatch {
        let resumption = LoopTimer(loop) { [weak self] in self?.state.withLock { $0.watch }?.change(to: .read) }
        return try loop.watch(listener.descriptor.rawValue, for: .read, named: "control socket") {
            [weak self, weak listener] _ in
            guard let self, let listener else { return }
            if self.accept(from: listener) { return }
            // Otherwise the loop would report the waiting clients again and again.
            self.state.withLock { $0.watch }?.change(to: [])
            resumption.arm(at: .now + Self.acceptPause)
        }
    }

    /// Accepts the clients that connected to a socket before its name was removed: they wait in its queue, which ends
    /// with the socket.
    private func acceptAll(from replaced: VarlinkListener) {
        for _ in 0...Int(VarlinkListener.backlog) / Self.acceptsPerTurn where accept(from: replaced) {}
    }

    private func stopListening() {
        let (listener, watch) = state.withLock { state in
            defer { (state.listener, state.watch, state.accepted) = (nil, nil, nil) }
            return (state.listener, state.watch)
        }
        watch?.cancel()
        listener?.close()
    }

    /// Accepts waiting connections and counts each one. Returns false if a waiting connection could neither be accepted
    /// nor turned away, or waits for the descriptor of one that gave way.
    private func accept(from listener: VarlinkListener) -> Bool {
        for _ in 0..<Self.acceptsPerTurn {
            let descriptor = acceptClient(listener.descriptor.rawValue)
            guard descriptor >= 0 else {
                switch errno {
                case EINTR, ECONNABORTED: continue
                case EAGAIN: return true
                case EMFILE, ENFILE:
                    switch state.withLock({ $0.shortage.newcomerFailed() }) {
                    case .wait: return false
                    case .turnAway: return turnAway(from: listener)
                    }
                default: return false  // no memory
                }
            }
            let socket = OwnedDescriptor(descriptor)
            // accept4(2) would set the flag atomically, but child processes of FreshetEventLoop inherit nothing in any
            // case.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            guard let peer = VarlinkPeer(of: descriptor) else { continue }
            let connection = VarlinkConnection(
                socket, peer: peer, rank: rank(peer), loop: loop, router: router, turns: turns, limits: limits
            ) { [weak self] in self?.limitPendingOutput() }
            if admit(connection) { state.withLock { $0.accepted }?.yield(connection) }
        }
        return true
    }

    /// Admits a connection, if necessary by displacing another one; returns whether it is admitted.
    private func admit(_ connection: VarlinkConnection) -> Bool {
        let client = connection.client
        let (isAdmitted, leaver) = state.withLock { state -> (Bool, VarlinkConnection?) in
            // The spare descriptor was closed earlier, and could not be opened again then.
            if state.spare == nil { state.spare = Self.makeSpare() }
            state.shortage.newcomerAccepted()
            var leaver: VarlinkConnection?
            if !state.limiter.admit(client) {
                let connections = Array(state.connections.values)
                let index = state.limiter.displaced(by: client, among: connections.map(\.occupant), now: .now)
                guard let index else { return (false, nil) }
                let displaced = connections[index]
                leaver = displaced
                state.connections[ObjectIdentifier(displaced)] = nil
                state.limiter.leave(displaced.client)
                state.shortage.connectionGivesWay()
                guard state.limiter.admit(client) else { return (false, displaced) }
            }
            state.connections[ObjectIdentifier(connection)] = connection
            return (true, leaver)
        }
        leaver?.giveWay()
        return isAdmitted
    }

    /// Closes connections whose clients do not read if all waiting replies together exceed the limit. Privileged
    /// clients are exempt: they could do more harm in other ways.
    private func limitPendingOutput() {
        let leavers = state.withLock { state -> [VarlinkConnection] in
            var unread = state.connections.values.filter { $0.client.rank == .unprivileged }.compactMap { connection in
                let (bytes, since) = connection.pendingOutput
                return since.map { (connection: connection, bytes: bytes, since: $0) }
            }
            var total = unread.reduce(0) { $0 + $1.bytes }
            guard total > limits.pendingOutputBytes else { return [] }
            // The last connection has waited longest.
            unread.sort { $0.since > $1.since }
            var leavers: [VarlinkConnection] = []
            while total > limits.pendingOutputBytes, unread.count > 1, let leaver = unread.popLast() {
                total -= leaver.bytes
                leavers.append(leaver.connection)
            }
            return leavers
        }
        for leaver in leavers { leaver.giveWay() }
    }

    /// Removes an ended connection from the count, unless it was displaced earlier.
    private func leave(_ connection: VarlinkConnection) {
        let watch = state.withLock { state -> DescriptorWatch? in
            guard state.connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else {
                return state.shortage.connectionEnded() ? state.watch : nil
            }
            state.limiter.leave(connection.client)
            return nil
        }
        // The loop reports the newcomers in its next iteration: this job, which keeps the descriptor, has ended then.
        watch?.change(to: .read)
    }

    /// Accepts and closes a client when no descriptor is left, by closing the spare descriptor first. Returns false if
    /// another part of the process took the free descriptor.
    private func turnAway(from listener: VarlinkListener) -> Bool {
        state.withLock { $0.spare = nil }
        let descriptor = Glibc.accept(listener.descriptor.rawValue, nil, nil)
        if descriptor >= 0 { close(descriptor) }
        let spare = Self.makeSpare()
        state.withLock { $0.spare = spare }
        return descriptor >= 0
    }

    private static func makeSpare() -> OwnedDescriptor? {
        let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
        return descriptor >= 0 ? OwnedDescriptor(descriptor) : nil
    }
}
