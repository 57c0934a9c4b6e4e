package import FreshetModel

/// When a pipeline runs, and how it treats its origin: the keys below `refresh:`.
package struct RefreshPolicy: Hashable, Sendable {
    /// The daemon's own signals that the pipeline subscribes to. It always receives requests of the operator.
    package var on: Set<StandardSignal>
    /// The D-Bus signals that the pipeline subscribes to.
    package var dbus: [BusSignalMatch]
    /// The time between a successful check and the next planned one; nil: no check is planned.
    package var every: Duration?
    /// The times of planned checks, besides `every`.
    package var calendar: [CalendarEvent]
    /// The largest delay that is added to `every` and to a calendar time; for one host and pipeline the delay is always
    /// the same.
    package var randomDelay: Duration
    /// The quiet period: a burst ends, and its held signals are delivered, when this time passes without a signal.
    package var quiet: Duration
    /// The longest time that a burst may hold signals.
    package var atMost: Duration
    /// The least time between the starts of two runs; requests of the operator ignore it.
    package var minInterval: Duration
    /// The effect of a signal while a run is in progress.
    package var whenRunning: WhenRunning
    /// How long after a successful check environment signals, except timers, are skipped; 0: they are never skipped.
    package var freshFor: Duration
    /// Whether the freshness that the origin states (`Cache-Control`, `Expires`) lengthens `freshFor`.
    package var honoursOrigin: Bool
    /// The longest time that a run may take.
    package var deadline: Duration
    package var retry: RetryPolicy
    /// The request budget; nil: any number of requests.
    package var budget: RequestBudget?
    /// Whether a run waits for the network.
    package var needsNetwork: NetworkNeed
    /// What runs do while the connection is metered.
    package var whenMetered: WhenMetered
    /// What runs do while the machine runs on battery.
    package var onBattery = WhenOnBattery.allow
    /// Absolute paths whose changes are requests, without duplicates.
    package var files: [String]
    /// The names of other pipelines whose new generations are requests, without duplicates.
    package var after: [String]

    /// Two seconds are longer than the bounce of a carrier or the messages of a link that comes up.
    package static let defaultQuiet: Duration = .seconds(2)
    package static let defaultAtMost: Duration = .seconds(10)
    package static let defaultMinInterval: Duration = .zero
    package static let defaultFreshFor: Duration = .seconds(60)
    package static let defaultDeadline: Duration = .seconds(120)

    package init(
        on: Set<StandardSignal> = StandardSignal.systemDefault, dbus: [BusSignalMatch] = [], every: Duration? = nil,
        calendar: [CalendarEvent] = [], randomDelay: Duration = .zero,
        quiet: Duration = RefreshPolicy.defaultQuiet, atMost: Duration = RefreshPolicy.defaultAtMost,
        minInterval: Duration = RefreshPolicy.defaultMinInterval, whenRunning: WhenRunning = .queue,
        freshFor: Duration = RefreshPolicy.defaultFreshFor, honoursOrigin: Bool = false,
        deadline: Duration = RefreshPolicy.defaultDeadline,
        retry: RetryPolicy = RetryPolicy(), budget: RequestBudget? = nil, needsNetwork: NetworkNeed = .bySource,
        whenMetered: WhenMetered = .allow, files: [String] = [], after: [String] = []
    ) {
        self.on = on
        self.dbus = dbus
        self.every = every
        self.calendar = calendar
        self.randomDelay = randomDelay
        self.quiet = quiet
        self.atMost = atMost
        self.minInterval = minInterval
        self.whenRunning = whenRunning
        self.freshFor = freshFor
        self.honoursOrigin = honoursOrigin
        self.deadline = deadline
        self.retry = retry
        self.budget = budget
        self.needsNetwork = needsNetwork
        self.whenMetered = whenMetered
        self.files = files
        self.after = after
    }

    /// Whether checks are planned by the clock.
    package var isPlanned: Bool { every != nil || !calendar.isEmpty }
}

/// The daemon's own signals.
package enum StandardSignal: String, CaseIterable, Hashable, Sendable {
    case start, network, resume, reload, foreground, metered

    /// The default subscriptions of a pipeline of the system service.
    package static let systemDefault: Set<StandardSignal> = [.start, .network, .resume, .reload]
    /// The default subscriptions of a pipeline of a user service, which also follows the user's sessions.
    package static let userDefault = systemDefault.union([.foreground])
}

/// The effect of a signal while a run is in progress.
package enum WhenRunning: String, CaseIterable, Hashable, Sendable {
    /// One more run starts after the current one.
    case queue
    /// The run is cancelled and another starts.
    case restart
    /// The signal is ignored, and counted.
    case ignore
}

/// What runs do that no person requested, while the connection is known to be metered.
package enum WhenMetered: String, CaseIterable, Hashable, Sendable {
    /// They wait.
    case wait
    /// They start as on any connection.
    case allow
}

/// What runs do that no person requested, while the machine is known to run on battery.
package enum WhenOnBattery: String, CaseIterable, Hashable, Sendable {
    /// They wait.
    case wait
    /// They start as on mains power.
    case allow
}

/// How a failed run is retried: exponential backoff with full jitter, without a limit on the number of attempts.
package struct RetryPolicy: Hashable, Sendable {
    /// The upper bound of the backoff after the first failure.
    package var from: Duration
    /// The upper bound of every backoff.
    package var to: Duration

    package init(from: Duration = .seconds(1), to: Duration = .seconds(300)) {
        self.from = from
        self.to = to
    }
}

/// Whether a run waits until the network is reachable.
package enum NetworkNeed: Hashable, Sendable {
    /// The default of the source: ``SourceDefinition/needsNetworkByDefault``.
    case bySource
    case no
    /// It waits for a route to the internet: to a documentation address of each family, or to the origin if its URL has
    /// an address.
    case yes
    /// It waits for a route to this address, IPv4 or IPv6, as written.
    case address(String)
    /// It waits for a route as with `yes`, and for an answer that proves it. Indirect, since the value is large and
    /// rare.
    indirect case probe(NetworkProbe)

    /// The proof that a run waits for, besides the route.
    package var probe: NetworkProbe? {
        if case .probe(let probe) = self { probe } else { nil }
    }
}
