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
/// Calls on one connection are answered one at a time, in their order; those of different connections at the same time.
/// Handlers run in child tasks of ``run()`` that prefer the loop; when `run()` has returned, all of them have ended.
public final class VarlinkServer: Sendable {
    /// What the service says of itself.
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

    /// What keeps one client from hurting the others.
    public struct Limits: Hashable, Sendable {
        /// Connections at once. Beyond this, and beyond the limits for users, the connection of the same user for
        /// which the server has waited longest gives way to the newcomer; root's newcomer displaces others' too.
        /// Without one (all have a call under way) the newcomer is turned away.
        public var clients = 256
        /// Connections at once of one user; root has no limit of its own.
        public var clientsPerUser = 32
        /// Of ``clients``, how many only root may have, so that it can always look into what goes on.
        public var clientsKeptForRoot = 8
        /// The bytes of a message from a client.
        public var messageBytes = 65_536
        /// How long a connection may be without a call before it is closed, and how long the last reply to a call may
        /// wait for its client to read on. The time that a handler takes does not count, nor does a stream's.
        public var silence: Duration = .seconds(30)

        public init() {}
    }

    /// Connections accepted before other work gets its turn.
    static let acceptsPerTurn = 16
    /// How long none is accepted when the system has nothing left to accept one with: long enough not to keep the loop
    /// busy, short enough for people.
    static let acceptPause: Duration = .milliseconds(100)

    private struct State {
        var census: ConnectionLimiter
        /// Those that the census has counted.
        var connections: [ObjectIdentifier: VarlinkConnection] = [:]
        /// Nil when it has stopped.
        var listener: VarlinkListener?
        var watch: DescriptorWatch?
        /// Where accepted connections go, while it runs.
        var accepted: AsyncStream<VarlinkConnection>.Continuation?
        /// Held to be given up for a moment when descriptors run out: a client in the queue can then be turned away,
        /// where otherwise the loop would be told of it for ever.
        var spare: OwnedDescriptor?
    }

    private let loop: EventLoop
    private let router: VarlinkRouter
    private let turns: FairScheduler
    private let limits: Limits
    private let state: Mutex<State>

    /// Makes a server on a listener; clients wait in the kernel's queue until ``run()``.
    ///
    /// `org.varlink.service` is added to the interfaces.
    public init(
        _ loop: EventLoop, _ listener: VarlinkListener, identity: Identity, interfaces: [VarlinkInterface],
        limits: Limits = Limits()
    ) throws(VarlinkInterface.ValidationError) {
        self.loop = loop
        self.limits = limits
        turns = FairScheduler(loop)
        router = VarlinkRouter(interfaces + [try ServiceInterface.make(identity, interfaces: interfaces)])
        state = Mutex(State(census: ConnectionLimiter(limits), listener: listener, spare: Self.makeSpare()))
    }

    /// Connections at present.
    public var clientCount: Int { state.withLock { $0.census.count } }

    /// Serves until the task is cancelled; then ends all connections and handlers, removes the socket, and returns.
    ///
    /// Who connects after that moment is left to a successor on the same socket, if it was inherited. Once only.
    public func run() async throws(SystemCallError) {
        let (connections, continuation) = AsyncStream.makeStream(of: VarlinkConnection.self)
        let listener = state.withLock { state in
            state.accepted = continuation
            return state.listener
        }
        if let listener { try listen(on: listener) }
        await withTaskExecutorPreference(loop) {
            await withDiscardingTaskGroup { group in
                for await connection in connections {
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

    /// Whether clients still find the socket at its path; see ``VarlinkListener/isInPlace``.
    public var isInPlace: Bool { state.withLock { $0.listener }?.isInPlace ?? true }

    /// Takes clients from another socket from now on, such as one that was made because somebody has removed the
    /// first one's name. Connections go on. After the end of ``run()`` it does nothing.
    public func change(to listener: VarlinkListener) throws(SystemCallError) {
        let (isListening, isRunning) = state.withLock { ($0.listener != nil, $0.accepted != nil) }
        guard isListening else { return listener.close() }
        if isRunning { try listen(on: listener) } else { state.withLock { $0.listener = listener } }
    }

    private func listen(on listener: VarlinkListener) throws(SystemCallError) {
        let resumption = LoopTimer(loop) { [weak self] in self?.state.withLock { $0.watch }?.change(to: .read) }
        let watch = try loop.watch(listener.descriptor.rawValue, for: .read, named: "control socket") {
            [weak self, weak listener] _ in
            guard let self, let listener else { return }
            if self.accept(from: listener) { return }
            // What waits in the queue would be reported again and again.
            self.state.withLock { $0.watch }?.change(to: [])
            resumption.arm(at: .now + Self.acceptPause)
        }
        let before = state.withLock { state in
            defer { (state.listener, state.watch) = (listener, watch) }
            return (state.listener, state.watch)
        }
        before.1?.cancel()
        withExtendedLifetime(before) {}
    }

    private func stopListening() {
        let (listener, watch) = state.withLock { state in
            defer { (state.listener, state.watch, state.accepted) = (nil, nil, nil) }
            return (state.listener, state.watch)
        }
        watch?.cancel()
        listener?.close()
    }

    /// Accepts what waits; each connection is counted before it is passed on. Returns false if nothing could be done
    /// about one that waits.
    private func accept(from listener: VarlinkListener) -> Bool {
        for _ in 0..<Self.acceptsPerTurn {
            let descriptor = Glibc.accept(listener.descriptor.rawValue, nil, nil)
            guard descriptor >= 0 else {
                switch errno {
                case EINTR, ECONNABORTED: continue
                case EAGAIN: return true
                case EMFILE, ENFILE: return turnAway(from: listener)
                default: return false  // no memory
                }
            }
            let socket = OwnedDescriptor(descriptor)
            // accept4(2) would do it in one step; a child of FreshetEventLoop inherits nothing in any case.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            guard let peer = VarlinkPeer(of: descriptor) else { continue }
            let connection = VarlinkConnection(
                socket, peer: peer, loop: loop, router: router, turns: turns, limits: limits)
            if admit(connection) { state.withLock { $0.accepted }?.yield(connection) }
        }
        return true
    }

    /// Counts a connection in, if need be in the place of one for which the server has waited long.
    private func admit(_ connection: VarlinkConnection) -> Bool {
        let user = connection.peer.user
        let (isAdmitted, leaver) = state.withLock { state -> (Bool, VarlinkConnection?) in
            // Given up in a worse moment, and not had back then.
            if state.spare == nil { state.spare = Self.makeSpare() }
            var leaver: VarlinkConnection?
            if !state.census.admit(user: user) {
                leaver = Self.longestWaiting(of: user, in: state.connections.values)
                guard let leaver else { return (false, nil) }
                state.connections[ObjectIdentifier(leaver)] = nil
                state.census.leave(user: leaver.peer.user)
                guard state.census.admit(user: user) else { return (false, leaver) }
            }
            state.connections[ObjectIdentifier(connection)] = connection
            return (true, leaver)
        }
        leaver?.giveWay()
        return isAdmitted
    }

    /// A user's newcomer displaces a connection of that user, one whose client has gone if there is any; root's, if there is
    /// none, one of anybody.
    private static func longestWaiting(
        of user: UInt32, in connections: some Collection<VarlinkConnection>
    ) -> VarlinkConnection? {
        if let abandoned = connections.first(where: { $0.peer.user == user && $0.isAbandoned }) { return abandoned }
        let waiting = connections.compactMap { connection in
            connection.waitingSince.map { (connection: connection, since: $0) }
        }
        let own = waiting.filter { $0.connection.peer.user == user }
        let candidates = own.isEmpty && user == 0 ? waiting : own
        return candidates.min { $0.since < $1.since }?.connection
    }

    /// Counts a connection out that has ended, unless it had to give way before.
    private func leave(_ connection: VarlinkConnection) {
        state.withLock { state in
            guard state.connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
            state.census.leave(user: connection.peer.user)
        }
    }

    /// With no descriptor left, gives up the spare one to accept a client and close it. Returns false if another part
    /// of the process was quicker to take it.
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
