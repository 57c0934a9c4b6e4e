import FreshetEventLoop
import Glibc
import Synchronization

/// The open sources of one loop, each of them once, however many subscribers it has.
///
/// It has weak references: a source without a ``Lease`` is closed.
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
    ///   - loop: The event loop of all sources.
    ///   - ownLoop: Runs that loop; nil: the program runs it.
    ///   - address: The address of a bus; nil: the one from the environment.
    ///   - network: Makes the monitor of the network; tests replace netlink.
    ///   - onEnd: Called when no source is open any more.
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

/// Keeps sources open for a subscriber.
final class Lease: Sendable {
    // In this order: the sources must be released before their loop.
    private let held: [any Sendable]
    private let sources: SystemSources

    init(_ held: any Sendable..., on sources: SystemSources) {
        self.held = held
        self.sources = sources
    }
}

/// An object that is made on demand, shared by all its users, and released with the last of them.
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

/// Objects like ``Shared``, by key.
final class SharedTable<Key: Hashable & Sendable, Value: AnyObject & Sendable>: Sendable {
    private struct Row { weak var value: Value? }
    private let rows = Mutex<[Key: Row]>([:])

    func get(_ key: Key, _ make: () -> Value) -> Value {
        rows.withLock { rows in
            if let value = rows[key]?.value { return value }
            let value = make()
            // Remove rows of released objects when one is added, so that there are never more rows than objects that
            // were alive together.
            rows = rows.filter { $0.value.value != nil }
            rows[key] = Row(value: value)
            return value
        }
    }
}

/// An event loop with its own thread, which ends with this object.
final class DedicatedLoop: Sendable {
    let loop: EventLoop

    init() throws(SystemCallError) {
        loop = try EventLoop()
        // The thread inherits the mask. Signals of the process are for the program's own threads.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try loop.runInThread(named: "freshet-signals")
    }

    deinit { loop.stop() }
}
