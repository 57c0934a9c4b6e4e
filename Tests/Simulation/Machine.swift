import ConfigurationTestSupport
import FreshetConfiguration
import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetTestKit
import WorldTestSupport

@testable import FreshetDaemon
@testable import FreshetSystemSignals

/// The world of the machines: one time, one internet.
final class Place {
    let executor = SerialTestExecutor()
    let clock: ScriptedClock
    let internet: ScriptedInternet

    init() {
        // A fixed start, so that the digests of courses do not depend on the clock.
        clock = ScriptedClock(
            executor: executor, start: BootInstant(nanoseconds: 0).advanced(by: .seconds(1_000_000)))
        internet = ScriptedInternet(clock: clock)
    }

    /// Lets time pass.
    func pass(_ duration: Duration) throws {
        try clock.manual.advance(by: duration, draining: executor)
    }

    /// Runs a body to its end, and lets time pass if the body waits for it.
    func run<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) throws -> Value {
        let result = Lock<Value?>(nil)
        let task = Task(executorPreference: executor) {
            let value = await body()
            result.withLock { $0 = value }
        }
        try executor.runUntilIdle()
        for _ in 0..<100 {
            if let value = result.withLock({ $0 }) { return value }
            try pass(.milliseconds(100))
        }
        task.cancel()
        throw Stall()
    }

    /// A step did not end within ten seconds.
    struct Stall: Error {}

    /// Seconds since the beginning.
    var now: Double { seconds(clock.manual.elapsed) }
}

/// A machine with its disk, its network, its users and its configuration files, and the daemon on it: wired like
/// `Daemon`, without the operating system.
final class Machine {
    let place: Place
    let disk: MemoryDisk
    let witness: Witness
    /// Its defect.
    let flaw: Flaw?
    private let host: UInt64
    private var seed: UInt64
    /// The configuration, by paths below `/etc/freshet`.
    var files: [String: String]
    /// How long the disk takes, from the next boot on.
    var latency = Duration.zero
    var system = OperatingSystem()
    var daemon: Daemon?

    /// One life of the daemon.
    final class Daemon {
        let engine: PipelineEngine
        let requestLimiter: RequestLimiter
        let life: Life
        let operation: Trigger
        var senses: Senses
        /// The network as the pipelines get it, as `NetworkSource` does.
        let feed: NetworkFeed
        let watch: NetworkWatch
        private let observation: NetworkObservation
        var configuration: Configuration
        /// The subscriptions of pipelines that are hosted, or were.
        var sources: [Sound: SignalSource] = [:]
        var hosted: [String: PipelineRunner] = [:]
        /// Of ``Flaw/runsTwice``.
        var doubles: [String: PipelineRunner] = [:]
        var service: Task<Void, Never>?

        init(_ machine: Machine, _ configuration: Configuration) {
            let clock = machine.place.clock
            self.configuration = configuration
            requestLimiter = RequestLimiter(configuration.daemon.requestLimits)
            life = Life(machine.disk, clock, latency: machine.latency, flaw: machine.flaw)
            engine = PipelineEngine(
                EngineDependencies(
                    fetcher: machine.place.internet, transformer: PageTransformer(), store: life, clock: clock,
                    requestLimiter: requestLimiter, prober: machine.place.internet.portal))
            operation = Trigger(SignalName.operation, now: { clock.manual.now })
            senses = Senses(&machine.system, machine.reading, at: clock.manual.now)
            let network = SignalSource(Sound.standard(.network).name, now: { clock.manual.now })
            sources[.standard(.network)] = network
            watch = NetworkWatch(.elsewhere, senses.fact, network.signal) {}
            feed = NetworkFeed(NetworkState(senses.fact, before: nil))
            observation = watch.observe { [feed] fact, cause in
                feed.publish(cause) { NetworkState(fact, before: $0) }
            }
        }

        /// In the order of their names, so that each course is reproducible.
        var inOrder: [(name: String, runner: PipelineRunner)] {
            hosted.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        }
    }

    /// - Parameters:
    ///   - files: the configuration, by paths below `/etc/freshet`.
    ///   - host: stands for the machine id.
    ///   - seed: the seed of random delays.
    init(
        _ files: [String: String], at place: Place = Place(), host: UInt64 = 1, seed: UInt64 = 1, flaw: Flaw? = nil
    ) {
        self.place = place
        self.files = files
        self.host = host
        self.seed = seed
        self.flaw = flaw
        disk = MemoryDisk(clock: place.clock)
        witness = Witness(place, disk)
    }

    deinit {
        daemon?.service?.cancel()
        // Disarmed explicitly, so that its tasks end with it: the executor does not own tasks that it has not run.
        _ = try? place.executor.runUntilIdle()
    }

    var reading: ClockReading {
        system.reading((boot: place.clock.manual.elapsed, wall: place.clock.wallNow.microseconds))
    }

    // MARK: The daemon's life

    /// Starts the daemon from the state on the disk.
    func boot() throws {
        witness.notify("boots")
        let configuration = read()
        let daemon = Daemon(self, configuration)
        self.daemon = daemon
        witness.booted()
        witness.network(isUp: daemon.feed.state.reachable)
        reportMetered(on: daemon)
        for definition in configuration.pipelines { try host(definition, on: daemon) }
        daemon.service = Task(executorPreference: place.executor) { [engine = daemon.engine, life = daemon.life] in
            await engine.run()
            life.ended()
        }
        fire(.standard(.start), "the daemon is ready", on: daemon)
        try settle()
    }

    /// Ends the daemon, as by SIGTERM. All its work ends.
    func stop() throws {
        guard let daemon else { return }
        witness.notify("stops")
        self.daemon = nil
        daemon.service?.cancel()
        try place.executor.runUntilIdle()
        for _ in 0..<100 where !daemon.life.hasEnded { try place.pass(.milliseconds(100)) }
        witness.expect(daemon.life.hasEnded, "the daemon does not end")
        witness.expect(
            daemon.requestLimiter.counts == (0, 0), "permits are in use after the end: \(daemon.requestLimiter.counts)")
        if flaw == .losesCopies { disk.format() }
    }

    /// Ends the daemon as SIGKILL or a power failure does: operations in progress are lost.
    func crash() throws {
        guard let daemon else { return }
        witness.notify("crashes")
        self.daemon = nil
        daemon.life.end()
        daemon.service?.cancel()
        // Its pending operations are lost too.
        try place.pass(.seconds(1))
        witness.crashed()
    }

    /// Reads the configuration again; it is refused as a whole if it has errors.
    @discardableResult
    func reload(configurationOnly: Bool = false) throws -> Bool {
        guard let daemon else { return false }
        witness.notify("reloads")
        let new = read()
        guard new.diagnostics.allSatisfy({ $0.severity != .error }) else { return false }
        let difference = new.difference(from: daemon.configuration)
        daemon.configuration = new
        daemon.requestLimiter.change(new.daemon.requestLimits)
        for name in difference.removed { try dismiss(name, on: daemon) }
        for definition in difference.changed { try change(definition, on: daemon) }
        for definition in difference.added { try host(definition, on: daemon) }
        if difference.isDaemonChanged {
            for name in difference.unchanged {
                if let definition = new.pipelines.first(where: { $0.name == name }) {
                    try change(definition, on: daemon)
                }
            }
        }
        if !configurationOnly { fire(.standard(.reload), "reload", on: daemon) }
        try settle()
        return true
    }

    private func change(_ definition: PipelineDefinition, on daemon: Daemon) throws {
        guard let runner = daemon.hosted[definition.name] else { return try host(definition, on: daemon) }
        let before = runner.definition
        if definition.refresh.on != before.refresh.on || definition.refresh.files != before.refresh.files
            || definition.refresh.dbus != before.refresh.dbus
        {
            daemon.engine.subscribe(runner, to: signal(of: definition, on: daemon))
        }
        let flawed = flawed(definition)
        witness.changes(definition, sameProduct: flawed.makesTheSame(as: before), splay: splay(daemon.configuration))
        runner.reconfigure(flawed, splay: splay(daemon.configuration), share: share(of: definition.name))
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

    /// All subscriptions of a pipeline, except for the network, which comes with its state.
    private func signal(of definition: PipelineDefinition, on daemon: Daemon) -> Signal {
        let clock = place.clock
        var signals = [daemon.operation.signal(activatedBy: definition.name)]
        for sound in Sound.all(of: definition.refresh) where sound != .standard(.network) {
            let source = daemon.sources[sound] ?? SignalSource(sound.name, now: { clock.manual.now })
            daemon.sources[sound] = source
            signals.append(source.signal)
        }
        return .merge(signals)
    }

    private func host(_ definition: PipelineDefinition, on daemon: Daemon) throws {
        let signal = signal(of: definition, on: daemon)
        witness.hosts(definition, splay: splay(daemon.configuration))
        daemon.hosted[definition.name] = try add(definition, signal, to: daemon)
        if flaw == .runsTwice { daemon.doubles[definition.name] = try add(definition, signal, to: daemon) }
    }

    private func add(_ definition: PipelineDefinition, _ signal: Signal, to daemon: Daemon) throws -> PipelineRunner {
        let (splay, share) = (splay(daemon.configuration), share(of: definition.name))
        seed += 1
        return try place.run {
            [
                engine = daemon.engine, life = daemon.life, feed = daemon.feed, witness, seed,
                flawed = flawed(definition)
            ]
            in
            await engine.add(flawed, signal: signal, network: feed, splay: splay, share: share, seed: seed) {
                if !life.isOver { witness.received($0.event, of: definition.name) }
            }
        }
    }

    /// The definition as the engine gets it.
    private func flawed(_ definition: PipelineDefinition) -> PipelineDefinition {
        var flawed = definition
        switch flaw {
        case .ignoresQuiet: flawed.refresh.quiet = .zero
        case .ignoresInterval: flawed.refresh.minInterval = .zero
        case .hastens: flawed.refresh.every = definition.refresh.every.map { $0 / 2 }
        case .acceptsAll: flawed.check = CheckRules()
        default: break
        }
        return flawed
    }

    private func dismiss(_ name: String, on daemon: Daemon) throws {
        for runner in [daemon.hosted.removeValue(forKey: name), daemon.doubles.removeValue(forKey: name)] {
            guard let runner else { continue }
            try place.run { [engine = daemon.engine] in await engine.remove(runner) }
        }
        witness.dismissed(name)
    }

    // MARK: Observation

    var names: [String] { daemon?.hosted.keys.sorted() ?? [] }
    var requestLimiter: RequestLimiter? { daemon?.requestLimiter }

    func status(_ name: String) -> PipelineStatus? { daemon?.hosted[name]?.status }

    /// Runs everything that is ready, and checks all invariants.
    func settle() throws {
        try place.executor.runUntilIdle()
        for (name, runner) in daemon?.inOrder ?? [] {
            witness.look(at: runner.status, of: name, requests: place.internet.requests(of: name))
        }
    }
}
