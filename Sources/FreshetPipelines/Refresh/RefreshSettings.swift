internal import FreshetModel

/// The part of a pipeline's definition and of the host's settings that the refresh machine needs.
package struct RefreshSettings: Hashable, Sendable {
    @Shared package var policy: RefreshPolicy
    package var needsNetwork: Bool
    /// The delay of the signals `start` and `network` on this host, so that a fleet does not send its requests at the
    /// same time.
    package var splay: Duration {
        get { rare.splay }
        set { rare.splay = newValue }
    }
    /// The calendar times of planned checks; nil: there are none.
    package var calendar: Shared<CalendarPlan>? {
        get { rare.calendar }
        set { rare.calendar = newValue }
    }
    /// The delay that is added to `every` and to a calendar time: a part of `random-delay`, always the same on this
    /// host.
    package var plannedDelay: Duration {
        get { rare.plannedDelay }
        set { rare.plannedDelay = newValue }
    }
    /// This host's and pipeline's fraction of all random values that are always the same: 0 or more, less than 1. It
    /// decides the order of mirrors; 0 for a pipeline without mirrors.
    package var share: Double {
        get { rare.share }
        set { rare.share = newValue }
    }
    /// The age since the last confirmation at which a copy expires; nil: it never expires.
    package var maxAge: Duration? {
        get { rare.maxAge }
        set { rare.maxAge = newValue }
    }
    /// Whether an expired copy is withdrawn from readers.
    package var withdraws: Bool {
        get { rare.withdraws }
        set { rare.withdraws = newValue }
    }

    /// What many pipelines do not have: they keep one word for all of it. Nil if all of it has its default.
    @Rarely private var rare = Rare()

    private struct Rare: RareValues {
        var splay = Duration.zero
        var calendar: Shared<CalendarPlan>?
        var plannedDelay = Duration.zero
        var share = 0.0
        var maxAge: Duration?
        var withdraws = false
    }

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
        self.needsNetwork = needsNetwork
        rare = Rare(splay: splay, plannedDelay: plannedDelay, maxAge: maxAge, withdraws: withdraws)
    }

    /// - Parameters:
    ///   - splay: this pipeline's share of the daemon's `splay`.
    ///   - share: this host's and pipeline's share of `random-delay`: 0 or more, less than 1, always the same.
    ///   - clock: the clock of the calendar times; nil: there are none.
    package init(
        _ definition: PipelineDefinition, splay: Duration = .zero, share: Double = 0, clock: (any EngineClock)? = nil
    ) {
        self.init(
            policy: definition.sharedRefresh, needsNetwork: definition.needsNetwork, splay: splay,
            plannedDelay: definition.refresh.randomDelay * share, maxAge: definition.cache.maxAge,
            withdraws: definition.cache.withdraws)
        if definition.mirrors != nil { self.share = share }
        calendar = clock.flatMap { CalendarPlan(definition.refresh.calendar, $0) }.map(Shared.init(wrappedValue:))
    }
}

extension PipelineDefinition {
    /// Whether a run waits for the network.
    package var needsNetwork: Bool {
        switch refresh.needsNetwork {
        case .bySource:
            (stage.hasStages ? sources.contains(where: \.needsNetworkByDefault) : source.needsNetworkByDefault)
                || check.proofSources.contains { SourceDefinition.http($0).needsNetworkByDefault }
        case .no: false
        case .yes, .address, .probe: true
        }
    }

    /// Whether both definitions make the same snapshot at the same path. If not, a run of one is of no use to the
    /// other.
    package func makesTheSame(as other: PipelineDefinition) -> Bool {
        stage == other.stage && transform == other.transform && template == other.template && check == other.check
            && cache.keepsTheSame(as: other.cache) && exactTexts.ofProduct == other.exactTexts.ofProduct
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
        validatorHash(with: parameters).text
    }

    /// The hash of the binding.
    func validatorHash(with parameters: ParameterValues) -> BindingHash {
        // A start computes the binding of each pipeline, so it makes no texts, and copies no value twice.
        let (check, cache) = (check, cache)
        var binding = BindingHash()
        binding.add(stage, with: parameters, and: check.proofSources)
        binding.add("transform:", transform ?? "")
        if let template { binding.add(template.bindingText) }
        binding.add("jq:", check.jq ?? "")
        binding.append(check.minBytes)
        binding.append("-")
        binding.append(check.maxBytes)
        binding.append(" ")
        for (index, type) in check.types.enumerated() {
            if index > 0 { binding.append(" ") }
            binding.append(type)
        }
        binding.endText()
        for line in check.laterLines { binding.add(line) }
        if cache.format != .json { binding.add("format:\(cache.format)") }
        for file in cache.files { binding.add("file:\(file.name) \(file.program)") }
        binding.append("mode:")
        binding.append(UInt64(cacheMode), radix: 8)
        binding.append(" ")
        binding.append(cache.group ?? "")
        binding.endText()
        return binding
    }
}
