import FreshetConfiguration
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetTestKit
import WorldTestSupport

@testable import FreshetDaemon

/// Where machines stand: one time, one internet.
final class Place {
    let executor = SerialTestExecutor()
    let clock: ScriptedClock
    let internet: ScriptedInternet

    init() {
        clock = ScriptedClock(executor: executor)
        internet = ScriptedInternet(clock: clock)
    }

    /// Lets time pass.
    func pass(_ duration: Duration) throws {
        try clock.manual.advance(by: duration, draining: executor)
    }

    /// Seconds since the beginning.
    var now: Double { seconds(clock.manual.elapsed) }
}

/// A machine with its disk, its network and its configuration files, and the daemon on it: what `Supervisor` wires,
/// with the operating system left out.
final class Machine {
    let place: Place
    let disk: MemoryDisk
    let witness: Witness
    private let host: UInt64
    private var seed: UInt64
    /// The configuration, by paths below `/etc/freshet`.
    var files: [String: String]
    private(set) var link: NetworkFact
    private var daemon: Daemon?

    /// One life of the daemon.
    private final class Daemon {
        let engine: PipelineEngine
        let slots: RunSlots
        let start, network, resume, reload: SignalSource
        let operation: Trigger
        var configuration: Configuration
        var hosted: [String: PipelineRunner] = [:]
        var service: Task<Void, Never>?

        init(_ machine: Machine, _ configuration: Configuration) {
            let clock = machine.place.clock
            self.configuration = configuration
            slots = RunSlots(limit: configuration.daemon.concurrency)
            engine = PipelineEngine(
                PipelineWorld(
                    fetcher: machine.place.internet, transformer: ScriptedTransformer(), store: machine.disk,
                    clock: clock, slots: slots, prober: machine.place.internet.portal))
            start = SignalSource(SignalName.start, now: { clock.now })
            network = SignalSource(SignalName.network, now: { clock.now })
            resume = SignalSource(SignalName.resume, now: { clock.now })
            reload = SignalSource(SignalName.reload, now: { clock.now })
            operation = Trigger(SignalName.operation, now: { clock.now })
        }
    }

    /// - Parameters:
    ///   - files: the configuration, by paths below `/etc/freshet`.
    ///   - host: stands for the machine id.
    ///   - seed: where random delays begin.
    init(_ files: [String: String], at place: Place = Place(), host: UInt64 = 1, seed: UInt64 = 1) {
        self.place = place
        self.files = files
        self.host = host
        self.seed = seed
        disk = MemoryDisk(clock: place.clock)
        witness = Witness(place, disk)
        // Long there: grace is over.
        let since = place.clock.now.advanced(by: .seconds(-1000))
        link = NetworkFact(.elsewhere, isReachable: true, paths: [Self.path("home")], changedAt: since, epoch: 1)
    }

    deinit {
        daemon?.service?.cancel()
        // So that its tasks end with it: the executor does not own those that it has not run.
        _ = try? place.executor.runUntilIdle()
    }

    // MARK: The daemon's life

    /// Starts the daemon from what the disk has.
    func boot() throws {
        let configuration = read()
        let daemon = Daemon(self, configuration)
        self.daemon = daemon
        witness.booted()
        for definition in configuration.pipelines { try host(definition, on: daemon) }
        daemon.service = Task(executorPreference: place.executor) { [engine = daemon.engine] in await engine.run() }
        daemon.start.fire("the daemon is ready")
        try settle()
    }

    /// Ends the daemon, as by SIGTERM. Nothing of it goes on afterwards.
    func stop() throws {
        guard let daemon else { return }
        self.daemon = nil
        daemon.service?.cancel()
        try place.executor.runUntilIdle()
        witness.expect(daemon.slots.counts == (0, 0), "slots are taken after the end: \(daemon.slots.counts)")
    }

    /// Reads the configuration again; refused whole if it has faults.
    @discardableResult
    func reload(configurationOnly: Bool = false) throws -> Bool {
        guard let daemon else { return false }
        let new = read()
        guard new.diagnostics.allSatisfy({ $0.severity != .error }) else { return false }
        let difference = new.difference(from: daemon.configuration)
        daemon.configuration = new
        daemon.slots.change(limit: new.daemon.concurrency)
        for name in difference.removed { try dismiss(name, on: daemon) }
        for definition in difference.changed {
            if let runner = daemon.hosted[definition.name], definition.refresh.on == runner.definition.refresh.on {
                if !definition.makesTheSame(as: runner.definition) { witness.changed(definition.name) }
                witness.hosts(definition)
                runner.reconfigure(definition, splay: splay(new), share: share(of: definition.name))
            } else {
                try dismiss(definition.name, on: daemon)
                try host(definition, on: daemon)
            }
        }
        for definition in difference.added { try host(definition, on: daemon) }
        if !configurationOnly {
            for definition in new.pipelines where definition.refresh.on.contains(.reload) {
                witness.demanded(definition.name)
            }
            daemon.reload.fire("reload")
        }
        try settle()
        return true
    }

    private func read() -> Configuration {
        var texts: [String: String] = [:]
        for (path, text) in files { texts["/etc/freshet/\(path)"] = text }
        return ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet"]), fileSystem: InMemoryFileSystem(texts: texts)
        ).load()
    }

    private func splay(_ configuration: Configuration) -> Duration {
        configuration.daemon.splay * share(of: "")
    }

    private func share(of name: String) -> Double {
        StableDelay.fraction(identity: String(host).utf8, name: name)
    }

    private func host(_ definition: PipelineDefinition, on daemon: Daemon) throws {
        var signals = [daemon.operation.signal(activatedBy: definition.name)]
        if definition.refresh.on.contains(.start) { signals.append(daemon.start.signal) }
        if definition.refresh.on.contains(.network) { signals.append(daemon.network.signal) }
        if definition.refresh.on.contains(.resume) { signals.append(daemon.resume.signal) }
        if definition.refresh.on.contains(.reload) { signals.append(daemon.reload.signal) }
        let state = NetworkState(link, before: nil)
        let splay = splay(daemon.configuration)
        let share = share(of: definition.name)
        seed += 1
        witness.hosts(definition)
        daemon.hosted[definition.name] = try place.executor.run {
            [engine = daemon.engine, witness, seed, signals] in
            await engine.add(
                definition, signal: .merge(signals), network: state, splay: splay, share: share, seed: seed
            ) { witness.heard($0, of: definition.name) }
        }
    }

    private func dismiss(_ name: String, on daemon: Daemon) throws {
        guard let runner = daemon.hosted.removeValue(forKey: name) else { return }
        try place.executor.run { [engine = daemon.engine] in await engine.remove(runner) }
        witness.dismissed(name)
    }

    // MARK: What happens to it

    /// The way out of the machine is another one, or is gone; the kernel's fact and its signal come at the same time.
    func network(_ name: String?, signalFirst: Bool = false) throws {
        let before = NetworkState(link, before: nil)
        link = NetworkFact(
            .elsewhere, isReachable: name != nil, paths: name.map { [Self.path($0)] } ?? [],
            obstacle: name == nil ? .noRoute : nil, changedAt: place.clock.now,
            epoch: link.epoch + (name == nil ? 0 : 1))
        place.internet.isUp = name != nil
        let state = NetworkState(link, before: before)
        guard let daemon else { return }
        if name != nil, signalFirst {
            daemon.network.fire(link.description)
            try settle()
        }
        for runner in daemon.hosted.values { runner.networkChanged(state) }
        try settle()
        if name != nil, !signalFirst {
            daemon.network.fire(link.description)
            try settle()
        }
    }

    /// logind says that the machine is about to sleep, or that it is not after all.
    func goesToSleep(_ sleeps: Bool = true) throws {
        witness.goesToSleep(sleeps)
        daemon?.engine.goesToSleep(sleeps)
        try settle()
    }

    /// The machine sleeps: its clock goes on, nothing runs, and the other ends forget its connections.
    func sleep(_ duration: Duration) {
        place.clock.manual.advance(by: duration)
        place.internet.breakConnections()
    }

    /// Wakes the machine: first an epoch begins and the pipelines are told, then the signal fires, and then what became
    /// due happens. The kernel still shows the network of before, and the new epoch's fact comes before or after the
    /// signal.
    func wake(factFirst: Bool = false) throws {
        let before = NetworkState(link, before: nil)
        link = NetworkFact(
            .elsewhere, isReachable: link.isReachable, paths: link.paths, obstacle: link.obstacle,
            changedAt: place.clock.now, epoch: link.epoch + 1)
        let state = NetworkState(link, before: before)
        guard let daemon else { return }
        witness.woke()
        daemon.engine.woke()
        if factFirst { for runner in daemon.hosted.values { runner.networkChanged(state) } }
        daemon.resume.fire("the machine woke up")
        try settle()
        if !factFirst { for runner in daemon.hosted.values { runner.networkChanged(state) } }
        try settle()
    }

    /// Sets the wall clock forward, or back.
    func stepClock(by step: Duration) throws {
        place.clock.stepWall(by: step)
        witness.clockStepped()
        daemon?.engine.clockStepped()
        try settle()
    }

    /// `freshetctl refresh`, without waiting.
    @discardableResult
    func refresh(_ name: String, force: Bool = false) throws -> RefreshRefusal? {
        guard let runner = daemon?.hosted[name] else { return nil }
        let refusal = runner.requestRefresh(force: force)
        if refusal == nil { witness.demanded(name) }
        try settle()
        return refusal
    }

    /// So many firings at one instant, of a signal that this pipeline alone hears.
    func flood(_ name: String, _ count: Int) {
        for _ in 0..<count { daemon?.operation.activate(for: name) }
    }

    func hold(_ name: String, _ held: Bool) throws {
        daemon?.hosted[name]?.hold(held)
        try settle()
    }

    /// Lets time pass.
    func pass(_ duration: Duration) throws {
        try place.pass(duration)
        try settle()
    }

    // MARK: What is to be seen

    var names: [String] { daemon?.hosted.keys.sorted() ?? [] }
    var slots: RunSlots? { daemon?.slots }

    func status(_ name: String) -> PipelineStatus? { daemon?.hosted[name]?.status }

    /// Runs what is ready, and looks whether all is as it must be.
    private func settle() throws {
        try place.executor.runUntilIdle()
        for (name, runner) in daemon?.hosted ?? [:] { witness.look(at: runner.status, of: name) }
    }

    private static func path(_ name: String) -> NetworkPath {
        NetworkPath(gateway: nil, interfaceIndex: 2, interfaceName: name, source: nil)
    }
}
