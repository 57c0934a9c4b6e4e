/// What changed parameters mean for a pipeline: a demand, which waits for its own quiet instead of a storm's, and the end
/// of a run with other values.
extension RefreshMachine {
    mutating func parametersChanged(_ values: ParameterValues, quiet: Duration, _ now: Instant) {
        var gate = parameters ?? ParameterDebouncer(ParameterValues())
        gate.set(values, quiet: quiet, at: now)
        parameters = gate
    }

    /// Acts on a change for which it has been quiet long enough.
    mutating func elapseParameters(_ now: Instant) {
        guard var gate = parameters, let due = gate.due, now >= due else { return }
        let cause = gate.pass()
        // One that was let through before, and could not run yet, is one with this.
        if gate.isPassed { ready.dropParameters() }
        gate.isPassed = cause != nil && !ready.hasParameters
        parameters = gate
        guard let cause else { return }
        report(.heard(cause))
        ready.merge(Wanted(causes: [cause]))
        if var retry {
            retry.isHeld = false
            retry.isCut = true
            self.retry = retry
        }
        interrupt(.parameters)
    }

    /// A run starts: what was changed until now goes along, and what is known of other values says nothing of these.
    mutating func takeParameters(into wanted: inout Wanted) {
        guard var gate = parameters else { return }
        if gate.isUntried {
            lastSuccess = nil
            lastRefusal = nil
            memory = nil
            failing = nil
        }
        let isPassed = gate.isPassed
        let cause = gate.start()
        parameters = gate
        guard let cause else { return }
        report(.heard(cause))
        if isPassed { wanted.dropParameters() }
        wanted.causes.add(cause)
    }

    /// What a run was for may go back to what waits: then that waits for more than what the gate let through.
    mutating func parametersRan(_ wanted: Wanted) {
        if wanted.hasParameters { parameters?.isPassed = false }
    }

    mutating func parametersReconfigured(_ values: ParameterValues, sameProduct: Bool) {
        guard values != ParameterValues() else {
            parameters = nil
            return
        }
        guard var gate = parameters else {
            parameters = ParameterDebouncer(values)
            return
        }
        gate.reconfigure(values, sameProduct: sameProduct)
        parameters = gate
    }
}

extension Wanted {
    fileprivate var hasParameters: Bool { causes.contains { $0.signal == SignalName.parameter } }

    fileprivate mutating func dropParameters() {
        causes.removeAll { $0.signal == SignalName.parameter }
    }
}
