import FreshetSignals
import Glibc

@testable import FreshetSystemSignals

/// The state that the kernel, logind and NetworkManager report for a machine. It exists whether a daemon runs or not.
struct OperatingSystem {
    /// The link of the default route; nil: there is no route.
    var route: String? = "home"
    /// Whether there is a route of the other protocol beside it.
    var hasIPv6 = false
    /// How long the machine has slept since it was started.
    var slept: Duration = .zero
    /// Sessions at the machine, by the paths of their objects.
    var sessions: [String: LoginSession] = [:]
    /// NetworkManager's property `Metered`.
    var metered: UInt32 = 4
    /// How often logind was started; each start has its own bus name.
    var logindStarts = 1
    /// All links so far; the kernel's number of a link is its index here.
    private var links: [String] = []

    var logind: String { ":1.\(logindStarts)" }

    /// The number of a link.
    fileprivate mutating func index(of name: String) -> Int32 {
        if !links.contains(name) { links.append(name) }
        return Int32(links.firstIndex(of: name) ?? 0) + 2
    }

    /// The clocks; only their differences count.
    func reading(_ clock: (boot: Duration, wall: Int64)) -> ClockReading {
        let wall = Duration.microseconds(clock.wall) - clock.boot
        return ClockReading(slept: slept, wall: wall)
    }

    fileprivate var networkManager: NetworkManagerMessage.Properties {
        NetworkManagerMessage.properties([
            .array([.entry(key: .string("Metered"), value: .variant(.uint32(metered)))])
        ])
    }

    fileprivate var rows: [LogindMessage.Row] {
        sessions.sorted { $0.key < $1.key }.map { LogindMessage.Row(path: $0.key, userID: $0.value.userID) }
    }

    fileprivate func properties(of path: String) -> LogindMessage.Properties? {
        sessions[path].map { LogindMessage.Properties(session: $0, isRemote: false, sessionClass: "user") }
    }
}

extension ClockReading {
    /// Two exactly known differences.
    init(slept: Duration, wall: Duration) {
        self.init(
            monotonic: .zero - slept, boot: .zero, realtime: wall, boot: .zero, monotonic: .zero - slept)
    }
}

/// The monitors of one life of the daemon: its own machines for the network, sleep and sessions, driven as their
/// monitors do.
struct Senses {
    /// IFF_UP and IFF_RUNNING (netdevice(7)).
    private static let runningLink: UInt32 = 0x1 | 0x40
    /// RTN_UNICAST (rtnetlink(7)).
    private static let unicast: UInt8 = 1

    private var network = ReachabilityMachine()
    private(set) var fact: NetworkFact
    var sleep: SleepMachine
    private var sessions = SessionMachine(.local)
    private var metered = MeteredMachine()

    /// The state at the start is not an event.
    init(_ system: inout OperatingSystem, _ reading: ClockReading, at now: ContinuousClock.Instant) {
        sleep = SleepMachine(reading, logind: .available, at: now)
        sleep.receivesSteps = true
        fact = NetworkFact(.elsewhere, isReachable: false, changedAt: now, epoch: 0)
        fact = network.add(.elsewhere, answers(of: &system), at: now)
        _ = logindStarts(system)
        _ = metered.serviceBecame(.received(sender: ":1.9"))
        _ = metered.answered(system.networkManager, request: metered.request)
    }

    // MARK: Network

    /// Links, addresses or routes changed: the kernel is asked. Returns the detail of the signal, if it fires.
    mutating func look(at system: inout OperatingSystem, at now: ContinuousClock.Instant) -> String? {
        take(network.look(answers(of: &system), at: now))
    }

    mutating func beginEpoch(at now: ContinuousClock.Instant) { _ = take(network.beginEpoch(at: now)) }

    private mutating func take(_ outcome: ReachabilityMachine.Outcome) -> String? {
        guard let change = outcome.changes.first else { return nil }
        fact = change.fact
        return change.firing
    }

    private mutating func answers(of system: inout OperatingSystem) -> [IPAddress: RouteAnswer] {
        let index = system.route.map { system.index(of: $0) }
        if let index, let name = system.route {
            network.tables.apply(.link(index: index, Link(name: Array(name.utf8), flags: Self.runningLink)))
        }
        var answers: [IPAddress: RouteAnswer] = [:]
        for address in NetworkTarget.elsewhere.addresses {
            guard let index, address.family == .v4 || system.hasIPv6 else {
                answers[address] = .refused(ENETUNREACH)
                continue
            }
            let source = address.family == .v4 ? "192.0.2.\(index)" : "2001:db8:1::\(index)"
            answers[address] = .route(
                RouteAnswer.Route(type: Self.unicast, index: index, source: IPAddress(source)))
        }
        return answers
    }

    // MARK: NetworkManager

    var isMetered: Bool { metered.fact.isMetered ?? false }

    /// NetworkManager reports its property again. Returns the detail of the signal, if it fires.
    mutating func meteredChanged(_ system: OperatingSystem) -> String? {
        metered.changed(system.networkManager).firing
    }

    // MARK: Sessions

    /// logind is reachable, possibly after a restart. Returns the firings of `foreground`.
    mutating func logindStarts(_ system: OperatingSystem) -> [String] {
        follow(sessions.logindBecame(.received(sender: system.logind)), system)
    }

    mutating func logindEnds() { _ = sessions.logindBecame(.missing(reason: "logind does not run")) }

    /// A session came, changed or ended.
    mutating func sessionChanged(_ path: String, before: LoginSession?, _ system: OperatingSystem) -> [String] {
        guard let session = system.sessions[path] else { return follow(sessions.removed(path), system) }
        guard let before else { return follow(sessions.added(path), system) }
        let change = LogindMessage.Change(
            isActive: before.isActive == session.isActive ? nil : session.isActive,
            isLocked: before.isLocked == session.isLocked ? nil : session.isLocked)
        return follow(sessions.changed(path, change), system)
    }

    /// Sends the machine's queries to logind, which answers immediately.
    private mutating func follow(_ first: SessionMachine.Outcome, _ system: OperatingSystem) -> [String] {
        var arrivals: [String] = []
        var outcomes = [first]
        while !outcomes.isEmpty {
            let outcome = outcomes.removeFirst()
            arrivals += outcome.arrivals
            if outcome.lists { outcomes.append(sessions.listed(system.rows, listing: sessions.listing)) }
            for path in outcome.requests {
                outcomes.append(sessions.answered(path, system.properties(of: path), listing: sessions.listing))
            }
        }
        return arrivals
    }
}
