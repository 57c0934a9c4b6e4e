/// When a pipeline runs, and how it treats its origin: the keys below `refresh:`.
package struct RefreshPolicy: Hashable, Sendable {
    /// The daemon's own signals that it listens to. The operator is always heard.
    package var on: Set<StandardSignal>
    /// The signals of D-Bus that it listens to.
    package var dbus: [BusSignalMatch]
    /// The time between a successful check and the next planned one; nil: never by the clock.
    package var every: Duration?
    /// Up to this much is added to `every`, the same on each occasion for one host and pipeline.
    package var randomDelay: Duration
    /// How long it must be quiet before what a storm gathered is delivered, and it is calm again.
    package var quiet: Duration
    /// The longest that a storm may hold back what it gathered.
    package var atMost: Duration
    /// The least time between the starts of two runs, but for the operator's.
    package var minInterval: Duration
    /// What a signal does while a run is under way.
    package var whenRunning: WhenRunning
    /// How long after a successful check environment signals but timers fetch nothing; 0: they always do.
    package var freshFor: Duration
    /// Whether what the origin says of the data's freshness (`Cache-Control`, `Expires`) lengthens `freshFor`.
    package var honoursOrigin: Bool
    /// The longest that a run may take.
    package var deadline: Duration
    package var retry: RetryPolicy
    /// How many requests it may make; nil: any number.
    package var budget: RequestBudget?
    /// Whether a run waits for the network.
    package var needsNetwork: NetworkNeed
    /// Absolute paths whose changes are demands, none twice.
    package var files: [String]
    /// The names of other pipelines whose new generations are demands, none twice.
    package var after: [String]

    /// A storm has calmed down when nothing came for two seconds: longer than a carrier's bounce or the burst of
    /// messages by which a link comes up.
    package static let defaultQuiet: Duration = .seconds(2)
    package static let defaultAtMost: Duration = .seconds(10)
    package static let defaultMinInterval: Duration = .zero
    package static let defaultFreshFor: Duration = .seconds(60)
    package static let defaultDeadline: Duration = .seconds(120)

    package init(
        on: Set<StandardSignal> = StandardSignal.systemDefault, dbus: [BusSignalMatch] = [], every: Duration? = nil,
        randomDelay: Duration = .zero,
        quiet: Duration = RefreshPolicy.defaultQuiet, atMost: Duration = RefreshPolicy.defaultAtMost,
        minInterval: Duration = RefreshPolicy.defaultMinInterval, whenRunning: WhenRunning = .queue,
        freshFor: Duration = RefreshPolicy.defaultFreshFor, honoursOrigin: Bool = false,
        deadline: Duration = RefreshPolicy.defaultDeadline,
        retry: RetryPolicy = RetryPolicy(), budget: RequestBudget? = nil, needsNetwork: NetworkNeed = .bySource,
        files: [String] = [], after: [String] = []
    ) {
        self.on = on
        self.dbus = dbus
        self.every = every
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
        self.files = files
        self.after = after
    }
}

/// The signals that the daemon itself has.
package enum StandardSignal: String, CaseIterable, Hashable, Sendable {
    case start, network, resume, reload, foreground

    /// What a pipeline of the system unit listens to where nothing is configured.
    package static let systemDefault: Set<StandardSignal> = [.start, .network, .resume, .reload]
    /// The same for a person's own unit: that person's sessions are its business.
    package static let userDefault = systemDefault.union([.foreground])
}

/// What a signal does while a run is under way.
package enum WhenRunning: String, CaseIterable, Hashable, Sendable {
    /// One more run after this one.
    case queue
    /// The run is cancelled and another starts.
    case restart
}

/// How a failed run is tried again: exponential back-off with full jitter, without end.
package struct RetryPolicy: Hashable, Sendable {
    /// The longest wait after the first failure.
    package var from: Duration
    /// The longest wait of all.
    package var to: Duration

    package init(from: Duration = .seconds(1), to: Duration = .seconds(300)) {
        self.from = from
        self.to = to
    }
}

/// Whether a run waits until the network is there.
package enum NetworkNeed: Hashable, Sendable {
    /// As ``SourceDefinition/needsNetworkByDefault`` says.
    case bySource
    case no
    /// The path to "elsewhere": a documentation address of each family, or the origin's own if it is a literal address.
    case yes
    /// The path to this address, IPv4 or IPv6, as written.
    case address(String)
    /// The path as with `yes`, and an answer that proves that it leads there. Apart, as it is large and rare.
    indirect case probe(NetworkProbe)

    /// The proof that a run waits for, besides the path.
    package var probe: NetworkProbe? {
        if case .probe(let probe) = self { probe } else { nil }
    }
}
