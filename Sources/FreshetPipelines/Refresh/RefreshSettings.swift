package import FreshetModel

/// The part of a pipeline's definition and of the host's settings that the refresh machine needs.
package struct RefreshSettings: Hashable, Sendable {
    @Shared package var policy: RefreshPolicy
    package var needsNetwork: Bool
    /// The delay of the signals `start` and `network` on this host, so that a fleet does not send its requests at the
    /// same time.
    package var splay: Duration
    /// The calendar times of planned checks; nil: there are none.
    package var calendar: Shared<CalendarPlan>?
    /// The delay that is added to `every` and to a calendar time: a part of `random-delay`, always the same on this host.
    package var plannedDelay: Duration
    /// The age since the last confirmation at which a copy expires; nil: it never expires.
    package var maxAge: Duration?
    /// Whether an expired copy is withdrawn from readers.
    package var withdraws: Bool

    package init(
        policy: RefreshPolicy, needsNetwork: Bool, splay: Duration = .zero, plannedDelay: Duration = .zero,
        maxAge: Duration? = nil, withdraws: Bool = false
    ) {
        self.init(
            policy: Shared(wrappedValue: policy), needsNetwork: needsNetwork, splay: splay, plannedDelay: plannedDelay,
            maxAge: maxAge, withdraws: withdraws)
    }

    private init(
        policy: Shared<RefreshPolicy>, needsNetwork: Bool, splay: Duration, plannedDelay: Duration, maxAge: Duration?,
        withdraws: Bool
    ) {
        _policy = policy
        self.withdraws = withdraws
        self.needsNetwork = needsNetwork
        self.splay = splay
        self.plannedDelay = plannedDelay
        self.maxAge = maxAge
    }

    /// - Parameters:
    ///   - splay: this pipeline's share of the daemon's `splay`.
    ///   - share: this host's and pipeline's share of `random-delay`: 0 or more, less than 1, always the same.
    ///   - clock: the clock of the calendar times; nil: there are none.
    package init(
        _ definition: PipelineDefinition, splay: Duration = .zero, share: Double = 0, clock: (any EngineClock)? = nil
    ) {
        self.init(
            policy: definition.$refresh, needsNetwork: definition.needsNetwork, splay: splay,
            plannedDelay: definition.refresh.randomDelay * share, maxAge: definition.cache.maxAge,
            withdraws: definition.cache.withdraws)
        calendar = clock.flatMap { CalendarPlan(definition.refresh.calendar, $0) }.map(Shared.init(wrappedValue:))
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

    /// Whether both definitions make the same snapshot at the same path. If not, a run of one is of no use to the
    /// other.
    package func makesTheSame(as other: PipelineDefinition) -> Bool {
        stage == other.stage && transform == other.transform && check == other.check
            && cache.keepsTheSame(as: other.cache)
    }

    /// The binding of validators besides the content: everything that decides what the snapshot becomes, whether it is
    /// accepted and which mode it gets. So an unchanged answer still goes through changed checks, and gets the
    /// configured mode.
    ///
    /// Header fields are included too, since `Accept` and similar fields choose the representation (RFC 9110, 12.5.5).
    /// Of a credential only the name is included, so that a new token for the same account causes no second download.
    /// The binding is a hash, since URL and values may be secrets: FNV-1a with 128 bits, as hexadecimal digits.
    ///
    /// - Parameter parameters: the values that the requests use.
    package func validatorBinding(with parameters: ParameterValues = ParameterValues()) -> String {
        var binding = BindingHash()
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

/// The state of the refresh machine that survives a restart of the daemon, converted to boot time.
package struct StoredRefreshState: Hashable, Sendable {
    /// The last check that succeeded.
    package var lastCheck: ContinuousClock.Instant?
    /// When the copy was last confirmed, with any configuration; without a known check, when it was committed.
    package var confirmed: ContinuousClock.Instant?
    /// When the data of the last check stops being fresh, as its origin states.
    package var expires: ContinuousClock.Instant?
    /// The end of the origin's `Retry-After`.
    package var retryAfter: ContinuousClock.Instant?
    /// The number of the last run.
    package var lastRun: UInt64
    package var hasGeneration: Bool
    /// Nil: there is no copy.
    package var copy: CopyState?
    /// The used part of the budget.
    package var requests: [RequestMeter.Spent]
    /// Whether the operator holds the pipeline.
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

    /// Converts stored wall-clock times to boot time.
    ///
    /// The wall clock may have been set since. A check that lies in the future by at most `tolerance` counts as a check
    /// of now; a later one is ignored, and the copy is checked. A `Retry-After` is limited to its longest allowed time.
    package init(
        _ remembered: PersistentState, now: ContinuousClock.Instant, wallNow: WallTime, tolerance: Duration
    ) {
        self.init(lastRun: remembered.lastRun, hasGeneration: remembered.generation != nil)
        isHeld = remembered.heldSince != nil
        copy = remembered.generation.map { CopyState($0, now: now, wallNow: wallNow) }
        confirmed = (remembered.lastCheck ?? remembered.generation?.committedAt).map { wall in
            now.advanced(by: .zero - max(.zero, wall.duration(to: wallNow)))
        }
        if !remembered.isOfOtherConfiguration, let wall = remembered.lastCheck {
            let age = wall.duration(to: wallNow)
            if age >= .zero {
                lastCheck = now.advanced(by: .zero - age)
            } else if .zero - age <= tolerance {
                lastCheck = now
            }
        }
        // The clock may have been set since: without a usable time of the check, the origin's statement is unusable
        // too.
        if lastCheck != nil, let wall = remembered.expires {
            expires = now.advanced(by: min(wallNow.duration(to: wall), DataExpiry.longest))
        }
        if let wall = remembered.retryAfter {
            let left = wallNow.duration(to: wall)
            if left > .zero { retryAfter = now.advanced(by: min(left, Backoff.longestRetryAfter)) }
        }
        // Requests in the future were made before the clock was set back: they count as requests of now.
        func instant(_ wall: WallTime) -> ContinuousClock.Instant {
            now.advanced(by: .zero - max(.zero, wall.duration(to: wallNow)))
        }
        requests = remembered.requests.map {
            RequestMeter.Spent(first: instant($0.first), last: instant($0.last), count: $0.count)
        }
    }
}
