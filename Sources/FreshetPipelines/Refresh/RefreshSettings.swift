/// What the refresh machine needs to know of a pipeline's definition and of this host.
package struct RefreshSettings: Hashable, Sendable {
    package var policy: RefreshPolicy
    package var needsNetwork: Bool
    /// How much later than heard `start` and `network` are acted on here, so that a fleet does not come all at once.
    package var splay: Duration
    /// What is added to `every`: a part of `random-delay`, always the same here.
    package var plannedDelay: Duration
    /// A copy that was last confirmed longer ago has expired; nil: none ever does.
    package var maxAge: Duration?
    /// Readers do not find a copy that has expired.
    package var withdraws: Bool

    package init(
        policy: RefreshPolicy, needsNetwork: Bool, splay: Duration = .zero, plannedDelay: Duration = .zero,
        maxAge: Duration? = nil, withdraws: Bool = false
    ) {
        self.withdraws = withdraws
        self.policy = policy
        self.needsNetwork = needsNetwork
        self.splay = splay
        self.plannedDelay = plannedDelay
        self.maxAge = maxAge
    }

    /// - Parameters:
    ///   - splay: this pipeline's own share of the daemon's `splay`.
    ///   - share: this host's and pipeline's share of `random-delay`: 0 or more, less than 1, always the same.
    package init(_ definition: PipelineDefinition, splay: Duration = .zero, share: Double = 0) {
        self.init(
            policy: definition.refresh, needsNetwork: definition.needsNetwork, splay: splay,
            plannedDelay: definition.refresh.randomDelay * share, maxAge: definition.cache.maxAge,
            withdraws: definition.cache.withdraws)
    }
}

extension PipelineDefinition {
    /// Whether a run waits for the network.
    package var needsNetwork: Bool {
        switch refresh.needsNetwork {
        case .bySource:
            (sources + check.proofSources.map(SourceDefinition.http)).contains(where: \.needsNetworkByDefault)
        case .no: false
        case .yes, .address, .probe: true
        }
    }

    /// Whether runs of the two make the same snapshot in the same place: if not, a run of the one is of no use to the
    /// other.
    package func makesTheSame(as other: PipelineDefinition) -> Bool {
        stage == other.stage && transform == other.transform && check == other.check
            && cache.keepsTheSame(as: other.cache)
    }

    /// What validators are bound to besides the content: whatever decides what the snapshot becomes, and whether it is
    /// accepted and with which mode it is kept. So what the origin says has not changed still goes through a check that
    /// has, and gets the mode that is configured now.
    ///
    /// Header fields are in it too, since `Accept` and its like choose the representation (RFC 9110, 12.5.5); of a
    /// credential its name, so that a new token for the same account asks for nothing twice. It is a number, since URL
    /// and values may be secrets: FNV-1a with 128 bits, as hexadecimal digits.
    ///
    /// - Parameter parameters: those that the source is asked with.
    package func validatorBinding(with parameters: ParameterValues = ParameterValues()) -> String {
        var binding = BindingNumber()
        binding.add(stage, with: parameters, and: check.proofSources.map(SourceDefinition.http))
        binding.add("transform:\(transform ?? "")")
        binding.add("jq:\(check.jq ?? "")")
        binding.add("\(check.minBytes)-\(check.maxBytes) \(check.types.joined(separator: " "))")
        for line in check.laterLines { binding.add(line) }
        if cache.format != .json { binding.add("format:\(cache.format)") }
        for file in cache.files { binding.add("file:\(file.name) \(file.program)") }
        binding.add("mode:\(String(cacheMode, radix: 8)) \(cache.group ?? "")")
        return binding.text
    }
}

/// What the machine goes on from after a restart of the daemon, on its own clock.
package struct StoredRefreshState: Hashable, Sendable {
    /// The last check that succeeded.
    package var lastCheck: ContinuousClock.Instant?
    /// When the copy was last confirmed, whatever was configured then; of one of which no check is known, when it came.
    package var confirmed: ContinuousClock.Instant?
    /// When what was checked then stops being fresh by its origin's word.
    package var expires: ContinuousClock.Instant?
    /// Until when the origin asked to be left alone.
    package var retryAfter: ContinuousClock.Instant?
    /// The number of the last run.
    package var lastRun: UInt64
    package var hasGeneration: Bool
    /// Nil: there is no copy.
    package var copy: CopyState?
    /// What was spent of its budget.
    package var requests: [RequestMeter.Spent]
    /// The operator holds it.
    package var isHeld = false

    package init(
        lastCheck: ContinuousClock.Instant? = nil, confirmed: ContinuousClock.Instant? = nil,
        expires: ContinuousClock.Instant? = nil, retryAfter: ContinuousClock.Instant? = nil, lastRun: UInt64 = 0,
        hasGeneration: Bool = false, copy: CopyState? = nil,
        requests: [RequestMeter.Spent] = []
    ) {
        self.lastCheck = lastCheck
        self.confirmed = confirmed
        self.expires = expires
        self.retryAfter = retryAfter
        self.lastRun = lastRun
        self.hasGeneration = hasGeneration
        self.copy = copy
        self.requests = requests
    }

    /// Brings what was remembered by the wall clock onto boot time.
    ///
    /// The wall clock may have been set since. A check that lies in the future by no more than `tolerance` counts as
    /// one of now; further ahead it is not believed, and the copy is checked. A wait for the origin is believed up to
    /// its limit.
    package init(
        _ remembered: PersistentState, now: ContinuousClock.Instant, wallNow: Int64, tolerance: Duration
    ) {
        self.init(lastRun: remembered.lastRun, hasGeneration: remembered.generation != nil)
        isHeld = remembered.heldSince != nil
        copy = remembered.generation.map { CopyState($0, now: now, wallNow: wallNow) }
        confirmed = (remembered.lastCheck ?? remembered.generation?.committedAt).map { wall in
            now.advanced(by: .zero - max(.zero, Self.span(from: wall, to: wallNow)))
        }
        if !remembered.isOfAnother, let wall = remembered.lastCheck {
            let age = Self.span(from: wall, to: wallNow)
            if age >= .zero {
                lastCheck = now.advanced(by: .zero - age)
            } else if .zero - age <= tolerance {
                lastCheck = now
            }
        }
        // By a clock that was set since, the origin's word is worth no more than the check's time.
        if lastCheck != nil, let wall = remembered.expires {
            expires = now.advanced(by: min(Self.span(from: wallNow, to: wall), DataExpiry.longest))
        }
        if let wall = remembered.retryAfter {
            let left = Self.span(from: wallNow, to: wall)
            if left > .zero { retryAfter = now.advanced(by: min(left, Backoff.longestRetryAfter)) }
        }
        // What lies in the future was spent before the clock was set back: it counts as of now.
        func instant(_ wall: Int64) -> ContinuousClock.Instant {
            now.advanced(by: .zero - max(.zero, Self.span(from: wall, to: wallNow)))
        }
        requests = remembered.requests.map {
            RequestMeter.Spent(first: instant($0.first), last: instant($0.last), count: $0.count)
        }
    }

    /// The time between two moments of the wall clock, in microseconds; what overflows is a nonsense of years.
    static func span(from start: Int64, to end: Int64) -> Duration {
        let (span, overflow) = end.subtractingReportingOverflow(start)
        return .microseconds(overflow ? (end > start ? .max : .min) : span)
    }
}
