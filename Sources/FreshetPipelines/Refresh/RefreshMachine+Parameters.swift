/// Changes of parameters: a change is a request with its own quiet period, and it ends a run with other values.
extension RefreshMachine {
    mutating func parametersChanged(_ values: ParameterValues, quiet: Duration, _ now: Instant) {
        var debouncer = parameters ?? ParameterDebouncer(ParameterValues())
        debouncer.set(values, quiet: quiet, at: now)
        parameters = debouncer
    }

    /// Applies a change whose quiet period is over.
    mutating func elapseParameters(_ now: Instant) {
        guard var debouncer = parameters, let due = debouncer.due, now >= due else { return }
        let cause = debouncer.pass()
        // An earlier change that could not run yet is merged with this one.
        if debouncer.isPassed { ready.dropParameters() }
        debouncer.isPassed = cause != nil && !ready.hasParameters
        parameters = debouncer
        guard let cause else { return }
        report(.received(cause))
        ready.merge(PendingRequest(causes: [cause]))
        if var retry {
            retry.isHeld = false
            retry.isCut = true
            self.retry = retry
        }
        interrupt(.parameters)
    }

    /// A run starts and takes all changes so far. State about other values is cleared.
    mutating func takeParameters(into pendingRequest: inout PendingRequest) {
        guard var debouncer = parameters else { return }
        if debouncer.isUntried {
            lastSuccess = nil
            lastRejection = nil
            memory = nil
            failing = nil
        }
        let isPassed = debouncer.isPassed
        let cause = debouncer.start()
        parameters = debouncer
        guard let cause else { return }
        report(.received(cause))
        if isPassed { pendingRequest.dropParameters() }
        pendingRequest.causes.add(cause)
    }

    /// The causes of a run may wait again: then the waiting request has more than the change that was let through.
    mutating func parametersRan(_ pendingRequest: PendingRequest) {
        if pendingRequest.hasParameters { parameters?.isPassed = false }
    }

    mutating func parametersReconfigured(_ values: ParameterValues, sameProduct: Bool) {
        guard values != ParameterValues() else {
            parameters = nil
            return
        }
        guard var debouncer = parameters else {
            parameters = ParameterDebouncer(values)
            return
        }
        debouncer.reconfigure(values, sameProduct: sameProduct)
        parameters = debouncer
    }
}

extension PendingRequest {
    fileprivate var hasParameters: Bool { causes.contains { $0.signal == SignalName.parameter } }

    fileprivate mutating func dropParameters() {
        causes.removeAll { $0.signal == SignalName.parameter }
    }
}
