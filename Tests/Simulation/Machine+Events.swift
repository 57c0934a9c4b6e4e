import FreshetPipelines
import FreshetSignals
import FreshetTestKit
import WorldTestSupport

@testable import FreshetDaemon
@testable import FreshetSystemSignals

/// The signals that a pipeline can subscribe to, except for the operator's.
enum Sound: Hashable {
    case standard(StandardSignal)
    /// A file, by its path.
    case file(String)
    case bus(BusSignalMatch)

    /// The names of the occurrences.
    var name: String {
        switch self {
        case .standard(let signal): signal.rawValue
        case .file(let path): FileMonitor.signalName(of: path)
        case .bus: SignalName.dbus
        }
    }

    /// All subscriptions of a pipeline.
    static func all(of refresh: RefreshPolicy) -> [Sound] {
        StandardSignal.allCases.filter(refresh.on.contains).map(Sound.standard) + refresh.dbus.map(Sound.bus)
            + refresh.files.map(Sound.file)
    }
}

/// The events of a machine.
extension Machine {
    /// Fires a signal, and notifies the witness of all pipelines that must receive it.
    func fire(_ sound: Sound, _ detail: String, on daemon: Daemon, times: Int = 1) {
        var isLost = false
        for (name, runner) in daemon.inOrder where Sound.all(of: runner.definition.refresh).contains(sound) {
            witness.fired(sound.name, at: name, times: times)
            isLost = isLost || (flaw == .losesWhileRunning && runner.status.run != nil)
        }
        switch (flaw, sound) {
        case (.losesFiles, .file), (.losesForeground, .standard(.foreground)): isLost = true
        case (.firesTwice, _): daemon.sources[sound]?.fire(detail)
        default: break
        }
        guard !isLost else { return }
        for _ in 0..<times { daemon.sources[sound]?.fire(detail) }
    }

    // MARK: Network

    /// The default route changes or is lost.
    func network(_ name: String?) throws {
        witness.notify("network \(name ?? "gone")")
        system.route = name
        place.internet.isUp = name != nil
        try lookAtNetwork()
    }

    /// A route of the other protocol comes or goes beside the existing one.
    func otherProtocol(_ isThere: Bool) throws {
        system.hasIPv6 = isThere
        try lookAtNetwork()
    }

    private func lookAtNetwork() throws {
        guard let daemon else { return }
        reportNetwork(daemon.senses.look(at: &system, at: place.clock.manual.now), on: daemon)
        try settle()
    }

    /// Publishes the state of the network, as `NetworkMonitor` does: the fact, then the signal, then both together.
    ///
    /// - Parameter firing: the detail of the signal; nil: it does not fire.
    private func reportNetwork(_ firing: String? = nil, on daemon: Daemon) {
        let state = NetworkState(daemon.senses.fact, before: daemon.feed.state)
        if state != daemon.feed.state { witness.network(isUp: state.reachable) }
        if flaw == .ignoresLoss, !state.reachable { return }
        daemon.watch.set(daemon.senses.fact)
        if let firing { fire(.standard(.network), firing, on: daemon) }
        daemon.watch.publish()
    }

    /// NetworkManager reports whether the connection is metered, by its numbers.
    func metered(_ value: UInt32) throws {
        witness.notify("metered \(value)")
        system.metered = value
        guard let daemon else { return }
        let firing = daemon.senses.meteredChanged(system)
        reportMetered(on: daemon)
        if let firing { fire(.standard(.metered), firing, on: daemon) }
        try settle()
    }

    func reportMetered(on daemon: Daemon) {
        let isMetered = daemon.senses.isMetered
        witness.metered(isMetered)
        if flaw != .ignoresMetered { daemon.engine.meteredChanged(isMetered ? "metered" : nil) }
    }

    // MARK: Sleep and clocks

    /// logind announces a sleep, or its end, after a sleep or without one.
    func goesToSleep(_ sleeps: Bool = true) throws {
        guard let daemon else { return }
        let outcome = daemon.senses.sleep.prepareForSleep(sleeps, reading, at: place.clock.manual.now)
        try follow(outcome, on: daemon)
    }

    /// The machine sleeps: its boot clock advances, nothing runs, and the peers drop its connections.
    func sleep(_ duration: Duration) {
        witness.notify("sleeps \(duration)")
        system.slept += duration
        place.clock.manual.advance(by: duration)
        place.internet.breakConnections()
        if daemon != nil, duration >= SleepMachine.shortestSleep { witness.slept() }
    }

    /// Wakes the machine: first a new epoch begins and the pipelines are notified, then the signal fires, and then
    /// everything that became due happens. The kernel still reports the old network.
    ///
    /// - Parameter isHeard: whether logind announces the wake; the clocks are compared in any case.
    func wake(isAnnounced: Bool = false) throws {
        guard let daemon else { return }
        if flaw == .firesBeforeWake { try place.executor.runUntilIdle() }
        let now = place.clock.manual.now
        let outcome = daemon.senses.sleep.wokeUp(reading, at: now)
        try follow(outcome, on: daemon)
        guard isAnnounced else { return }
        let again = daemon.senses.sleep.prepareForSleep(false, reading, at: now)
        let fires = again.resumed != nil || (flaw == .wakesTwice)
        witness.expect(outcome.resumed == nil || !fires, "one wake fires twice")
        try follow(again, on: daemon)
    }

    /// Applies a message of the sleep monitor, as `SleepMonitor` and `SleepSource` do.
    private func follow(_ outcome: SleepMachine.Outcome, on daemon: Daemon) throws {
        if let detail = outcome.resumed {
            daemon.senses.beginEpoch(at: place.clock.manual.now)
            reportNetwork(on: daemon)
            witness.woke()
            daemon.engine.woke()
            fire(.standard(.resume), detail, on: daemon)
        }
        reportSleep(on: daemon)
        try settle()
        if outcome.stepped != nil {
            witness.clockStepped()
            daemon.engine.clockStepped()
            try settle()
        }
    }

    private func reportSleep(on daemon: Daemon) {
        let sleeps = daemon.senses.sleep.fact.isGoingToSleep
        witness.goesToSleep(sleeps)
        if flaw != .ignoresSleep { daemon.engine.goesToSleep(sleeps) }
    }

    /// Sets the wall clock forward, or back.
    func stepClock(by step: Duration) throws {
        witness.notify("clock set by \(step)")
        place.clock.stepWall(by: step)
        guard let daemon else { return }
        try follow(daemon.senses.sleep.clockWasSet(reading, at: place.clock.manual.now), on: daemon)
    }

    /// Lets time pass.
    func pass(_ duration: Duration) throws {
        let end = place.clock.manual.now.advanced(by: duration)
        while let daemon, let deadline = daemon.senses.sleep.deadline, deadline <= end {
            try place.pass(place.clock.manual.now.duration(to: deadline))
            daemon.senses.sleep.deadlinePassed(at: deadline)
            reportSleep(on: daemon)
            try settle()
        }
        try place.pass(place.clock.manual.now.duration(to: end))
        try settle()
    }

    // MARK: People, files, the bus

    /// A session came, changed, or (nil) ended.
    func session(_ id: String, _ session: LoginSession?) throws {
        let path = "/org/freedesktop/login1/session/_3\(id)"
        let before = system.sessions[path]
        system.sessions[path] = session
        guard let daemon else { return }
        for arrival in daemon.senses.sessionChanged(path, before: before, system) {
            fire(.standard(.foreground), arrival, on: daemon)
        }
        try settle()
    }

    /// logind is restarted; meanwhile sessions may change.
    func restartLogind(_ meanwhile: () throws -> Void = {}) throws {
        daemon?.senses.logindEnds()
        try meanwhile()
        system.logindStarts += 1
        guard let daemon else { return }
        for arrival in daemon.senses.logindStarts(system) { fire(.standard(.foreground), arrival, on: daemon) }
        try settle()
    }

    /// A file changed this number of times at one instant.
    func file(_ path: String, times: Int = 1) throws {
        guard let daemon else { return }
        fire(.file(path), "written", on: daemon, times: times)
        try settle()
    }

    /// A D-Bus signal fires this number of times at one instant.
    func bus(_ interface: String, times: Int = 1) throws {
        guard let daemon else { return }
        let sounds = daemon.sources.keys.filter {
            if case .bus(let match) = $0 { match.interface == interface } else { false }
        }
        for sound in sounds.sorted(by: { "\($0)" < "\($1)" }) { fire(sound, interface, on: daemon, times: times) }
        try settle()
    }

    // MARK: The operator

    /// `freshetctl refresh`, without waiting.
    @discardableResult
    func refresh(_ name: String, force: Bool = false) throws -> RefreshRefusal? {
        guard let runner = daemon?.hosted[name] else { return nil }
        let rejection = runner.requestRefresh(force: force)
        if rejection == nil { witness.fired(SignalName.operation, at: name) }
        try settle()
        return rejection
    }

    /// This number of firings at one instant, of a signal that only this pipeline receives.
    func flood(_ name: String, _ count: Int) {
        guard let daemon, daemon.hosted[name] != nil else { return }
        witness.notify("\(name): flood")
        if !witness.isRefused(name) { witness.fired(SignalName.operation, at: name, times: count) }
        for _ in 0..<count { daemon.operation.activate(for: name) }
    }

    func hold(_ name: String, _ held: Bool) throws {
        guard let runner = daemon?.hosted[name] else { return }
        witness.notify("\(name): \(held ? "held" : "released")")
        witness.holds(name, held)
        runner.hold(since: held ? 1 : nil)
        try settle()
    }
}
