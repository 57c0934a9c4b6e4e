/// What the refresh machine needs to know of a pipeline's definition and of this host.
package struct RefreshSettings: Hashable, Sendable {
    package var policy: RefreshPolicy
    package var needsNetwork: Bool
    /// How much later than heard `start` and `network` are acted on here, so that a fleet does not come all at once.
    package var splay: Duration
    /// What is added to `every`: a part of `random-delay`, always the same here.
    package var plannedDelay: Duration

    package init(
        policy: RefreshPolicy, needsNetwork: Bool, splay: Duration = .zero, plannedDelay: Duration = .zero
    ) {
        self.policy = policy
        self.needsNetwork = needsNetwork
        self.splay = splay
        self.plannedDelay = plannedDelay
    }

    /// - Parameters:
    ///   - splay: this pipeline's own share of the daemon's `splay`.
    ///   - share: this host's and pipeline's share of `random-delay`: 0 or more, less than 1, always the same.
    package init(_ definition: PipelineDefinition, splay: Duration = .zero, share: Double = 0) {
        self.init(
            policy: definition.refresh, needsNetwork: definition.needsNetwork, splay: splay,
            plannedDelay: definition.refresh.randomDelay * share)
    }
}

extension PipelineDefinition {
    /// Whether a run waits for the network.
    package var needsNetwork: Bool {
        switch refresh.needsNetwork {
        case .bySource: source.needsNetworkByDefault
        case .no: false
        case .yes, .address: true
        }
    }

    /// Whether runs of the two make the same snapshot in the same place: if not, a run of the one is of no use to the
    /// other.
    package func makesTheSame(as other: PipelineDefinition) -> Bool {
        source == other.source && transform == other.transform && check == other.check && cache == other.cache
    }

    /// What validators are bound to besides the content: whatever decides what the snapshot becomes, and whether it is
    /// accepted and with which mode it is kept. So what the origin says has not changed still goes through a check that
    /// has, and gets the mode that is configured now.
    ///
    /// Header fields are in it too, since `Accept` and its like choose the representation (RFC 9110, 12.5.5); their
    /// values only as a number, since a value may be a secret.
    package var validatorBinding: String {
        let origin =
            switch source {
            case .http(let source): "\(source.url)\n\(source.headers.bindingNumber)"
            case .command(let arguments): "command:\(arguments)"
            case .file(let path): "file:\(path)"
            }
        let limits = "\(check.minBytes)-\(check.maxBytes) \(check.types.joined(separator: " "))"
        let mode = cache.mode.map { String($0, radix: 8) } ?? ""
        return [origin, transform ?? "", check.jq ?? "", limits, mode].joined(separator: "\n")
    }
}

extension [HTTPHeader] {
    /// FNV-1a over names and values, as hexadecimal digits.
    fileprivate var bindingNumber: String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for header in self {
            for byte in header.name.lowercased().utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            hash = (hash ^ 0x3A) &* 0x100_0000_01B3
            for byte in header.value.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            hash = (hash ^ 0x0A) &* 0x100_0000_01B3
        }
        return String(hash, radix: 16)
    }
}

/// What the machine goes on from after a restart of the daemon, on its own clock.
package struct RefreshMemory: Hashable, Sendable {
    /// The last check that succeeded.
    package var lastCheck: ContinuousClock.Instant?
    /// Until when the origin asked to be left alone.
    package var retryAfter: ContinuousClock.Instant?
    /// The number of the last run.
    package var lastRun: UInt64
    package var hasGeneration: Bool

    package init(
        lastCheck: ContinuousClock.Instant? = nil, retryAfter: ContinuousClock.Instant? = nil, lastRun: UInt64 = 0,
        hasGeneration: Bool = false
    ) {
        self.lastCheck = lastCheck
        self.retryAfter = retryAfter
        self.lastRun = lastRun
        self.hasGeneration = hasGeneration
    }

    /// Brings what was remembered by the wall clock onto boot time.
    ///
    /// The wall clock may have been set since. A check that lies in the future by no more than `tolerance` counts as
    /// one of now; further ahead it is not believed, and the copy is checked. A wait for the origin is believed up to
    /// its limit.
    package init(
        _ remembered: RememberedState, now: ContinuousClock.Instant, wallNow: Int64, tolerance: Duration
    ) {
        self.init(lastRun: remembered.lastRun, hasGeneration: remembered.generation != nil)
        if let wall = remembered.lastCheck {
            let age = Self.span(from: wall, to: wallNow)
            if age >= .zero {
                lastCheck = now.advanced(by: .zero - age)
            } else if .zero - age <= tolerance {
                lastCheck = now
            }
        }
        if let wall = remembered.retryAfter {
            let left = Self.span(from: wallNow, to: wall)
            if left > .zero { retryAfter = now.advanced(by: min(left, BackOff.longestRetryAfter)) }
        }
    }

    /// The time between two moments of the wall clock, in microseconds; what overflows is a nonsense of years.
    private static func span(from start: Int64, to end: Int64) -> Duration {
        let (span, overflow) = end.subtractingReportingOverflow(start)
        return .microseconds(overflow ? (end > start ? .max : .min) : span)
    }
}
