import FreshetEventLoop
import Glibc
import Synchronization

/// What is open on one loop, each source once however many listen to it.
///
/// It holds none of them: what nobody has a ``Lease`` of any more is closed.
final class SystemSources: Sendable {
    let loop: EventLoop
    private let ownLoop: DedicatedLoop?
    private let onEnd: @Sendable () -> Void
    private let address: @Sendable (BusConnection.Bus) -> String?
    private let makeNetwork: @Sendable (EventLoop) -> NetworkMonitor
    private let networkMonitor = Shared<NetworkMonitor>()
    private let sleepMonitor = Shared<SleepMonitor>()
    private let fileMonitor = Shared<FileMonitor>()
    private let hangupSource = Shared<HangupSource>()
    private let sessionMonitors = SharedTable<SessionScope, SessionMonitor>()
    private let connections = SharedTable<BusConnection.Bus, BusConnection>()
    private let busSignals = SharedTable<BusConnection.Bus, BusSignals>()

    /// - Parameters:
    ///   - loop: where all of it is listened to.
    ///   - ownLoop: keeps that loop turning; nil: somebody else does.
    ///   - address: where a bus is, if not where the environment says.
    ///   - network: makes the monitor of the network; tests leave netlink out.
    ///   - onEnd: called when nothing is open any more.
    init(
        _ loop: EventLoop, _ ownLoop: DedicatedLoop? = nil,
        address: @escaping @Sendable (BusConnection.Bus) -> String? = { _ in nil },
        network: @escaping @Sendable (EventLoop) -> NetworkMonitor = { NetworkMonitor($0) },
        onEnd: @escaping @Sendable () -> Void = {}
    ) {
        self.loop = loop
        self.ownLoop = ownLoop
        self.address = address
        makeNetwork = network
        self.onEnd = onEnd
    }

    deinit { onEnd() }

    func network() -> NetworkMonitor { networkMonitor.get { makeNetwork(loop) } }

    func sleep() -> SleepMonitor { sleepMonitor.get { SleepMonitor(loop, bus: bus(.system)) } }

    func files() -> FileMonitor { fileMonitor.get { FileMonitor(loop) } }

    func hangups() throws(SystemCallError) -> HangupSource {
        try hangupSource.get { () throws(SystemCallError) in try HangupSource(loop) }
    }

    func sessions(of scope: SessionScope) -> SessionMonitor {
        sessionMonitors.get(scope) { SessionMonitor(bus: bus(.system), scope: scope) }
    }

    func signals(of bus: BusConnection.Bus) -> BusSignals { busSignals.get(bus) { BusSignals(self.bus(bus)) } }

    private func bus(_ bus: BusConnection.Bus) -> BusConnection {
        connections.get(bus) { BusConnection(loop, bus, address: address(bus)) }
    }
}

/// Keeps open what somebody listens to.
final class Lease: Sendable {
    // In this order: what is open goes before the loop that it is on.
    private let held: [any Sendable]
    private let sources: SystemSources

    init(_ held: any Sendable..., on sources: SystemSources) {
        self.held = held
        self.sources = sources
    }
}

/// Something that is made when it is wanted and nobody has it, and goes away with the last who has it.
final class Shared<Value: AnyObject & Sendable>: Sendable {
    private struct State { weak var value: Value? }
    private let state = Mutex(State())

    func get<Failure: Error>(_ make: () throws(Failure) -> Value) throws(Failure) -> Value {
        try state.withLock { state throws(Failure) in
            if let value = state.value { return value }
            let value = try make()
            state.value = value
            return value
        }
    }
}

/// The same, for several by their keys.
final class SharedTable<Key: Hashable & Sendable, Value: AnyObject & Sendable>: Sendable {
    private struct Row { weak var value: Value? }
    private let rows = Mutex<[Key: Row]>([:])

    func get(_ key: Key, _ make: () -> Value) -> Value {
        rows.withLock { rows in
            if let value = rows[key]?.value { return value }
            let value = make()
            // Rows of what has gone are taken away when one is added: there are never more than were wanted at a time.
            rows = rows.filter { $0.value.value != nil }
            rows[key] = Row(value: value)
            return value
        }
    }
}

/// A loop with a thread of its own, which ends with this object.
final class DedicatedLoop: Sendable {
    let loop: EventLoop

    init() throws(SystemCallError) {
        loop = try EventLoop()
        // The thread inherits the mask. Signals of the program are for the program's threads.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try loop.runInThread(named: "freshet-signals")
    }

    deinit { loop.stop() }
}
