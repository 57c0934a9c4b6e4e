internal import FreshetSignals

/// What the daemon says to a pipeline, and what it can ask. From any thread.
extension PipelineRunner {
    /// Asks for a run, and awaits the end of the first one that starts after this call, or of the one that superseded
    /// it. Cancelled, it returns ``RefreshAnswer/stopped``; the run goes on.
    ///
    /// - Parameters:
    ///   - force: passes `Retry-After` and an unreachable network too.
    ///   - unconditional: the run sends no validators.
    package func refresh(force: Bool, unconditional: Bool = false) async -> RefreshAnswer {
        await answer { .refresh(request: $0, force: force, unconditional: unconditional) }
    }

    /// Asks for something that is answered under a number.
    func answer(_ event: @Sendable (UInt64) -> RefreshMachine.Event) async -> RefreshAnswer {
        let request = state.withLock { state in
            state.lastRequest += 1
            return state.lastRequest
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isClosed { state.waiters[request] = continuation }
                    return !state.isClosed
                }
                guard isOpen else { return continuation.resume(returning: .stopped) }
                // Cancelled before there was a waiter, nobody would wake it.
                if Task.isCancelled { return abandon(request) }
                mailbox.post(event(request))
            }
        } onCancel: {
            abandon(request)
        }
    }

    /// Asks for a run without waiting for it; returns why it is refused, if it is.
    @discardableResult
    package func requestRefresh(force: Bool, unconditional: Bool = false) -> RefreshRefusal? {
        if let refusal = refusal(force: force) { return refusal }
        mailbox.post(.refresh(request: nil, force: force, unconditional: unconditional))
        return nil
    }

    /// Why the operator's request would be refused now; nil: it would not.
    package func refusal(force: Bool) -> RefreshRefusal? {
        let now = world.clock.now
        return state.withLock { $0.machine.refusal(force: force, at: now) }
    }

    /// The configuration that holds now.
    package var definition: PipelineDefinition { state.withLock { $0.definition } }

    /// Another configuration of the same name holds from now on. A run whose product would be another one is cancelled
    /// and started anew; otherwise state, run and back-off stay. It asks for no run by itself: fire `reload` after it.
    package func reconfigure(_ definition: PipelineDefinition, splay: Duration = .zero, share: Double = 0) {
        let settings = RefreshSettings(definition, splay: splay, share: share)
        state.withLock { state in
            let before = state.parameters.values(for: state.definition)
            let parameters = ParameterSettings(remembered: state.parameters.set, for: definition)
            state.droppedParameters += state.parameters.set.keys.filter { parameters.set[$0] == nil }.sorted()
            state.parameters = parameters
            let values = parameters.values(for: definition)
            let sameProduct = values == before && definition.makesTheSame(as: state.definition)
            state.definition = definition
            // Inside, so that the machine hears of values in the order in which they were set.
            mailbox.post(.reconfigured(settings, sameProduct: sameProduct, parameters: values))
        }
    }

    /// Tells the network's state for this pipeline's target, before or after its signal fires.
    package func networkChanged(_ network: NetworkState) {
        mailbox.post(.network(network))
    }

    /// Tells on which directly connected networks the origin may be; nil: on none. See ``RefreshMachine/Event/directNetworks(_:)``.
    package func directNetworksChanged(_ revision: UInt64?) {
        mailbox.post(.directNetworks(revision))
    }

    /// Tells what readers see since somebody but a run has changed it: rolled it back, pinned it.
    package func offers(_ generation: CurrentGeneration) {
        state.withLock { $0.offer(generation) }
        lookAtCopy()
    }

    /// Has the machine look at the copy, if that matters to it.
    private func lookAtCopy() {
        let matters = state.withLock {
            $0.toldCopy != nil || $0.toldExpiry?.wall != $0.generation?.contentExpires
        }
        if matters { mailbox.post(.timer) }
    }

    /// Tells that the operator has made what a check refused the copy that readers see.
    package func accepted(_ generation: CurrentGeneration) {
        let run = state.withLock { state -> UInt64? in
            // Else another one was refused since, and stays that.
            guard let refused = state.refused, refused.digest == generation.digest else {
                state.offer(generation)
                return nil
            }
            state.offer(generation)
            state.lastCheck = max(state.lastCheck ?? refused.refusedAt, refused.refusedAt)
            return state.refusedRun
        }
        mailbox.post(.accepted(run: run))
    }

    /// Fires `start` for this pipeline alone: it is new, so whatever it listens to may have fired before it was there.
    ///
    /// - Parameter detail: why, for people.
    package func begin(detail: String) {
        mailbox.post(.heard([RunCause(SignalName.start, first: world.clock.now, detail: detail)]))
    }

    /// Tells that nothing is offered any more, since nothing of it was whole.
    package func offersNothing() {
        state.withLock { $0.generation = nil }
        mailbox.post(.lost)
    }

    /// Tells that what a check refused is not kept any more.
    package func keepsNothingRefused() {
        state.withLock { $0.refused = nil }
    }

    /// Tells that this, which a check refused, is not kept any more; also if the run under way was what refused it.
    package func keepsNotRefused(_ digest: String) {
        state.withLock { state in
            if state.refused?.digest == digest { state.refused = nil }
            state.progress.forgetRefused(digest)
        }
    }

    /// Tells that the copy was let go of where readers see none, and so none is to be told of.
    package func releases() {
        state.withLock { $0.generation?.release() }
        lookAtCopy()
    }

    /// While it is held nothing starts. A run under way ends by itself.
    ///
    /// - Parameter since: wall-clock microseconds since 1970; nil: it is released.
    package func hold(since: Int64?) {
        // Inside, so that the machine hears of it in the order in which it was said.
        state.withLock { state in
            state.heldSince = since
            mailbox.post(.held(since != nil))
        }
    }

    /// What came of its runs since it was made.
    package var counters: RunCounters { state.withLock { $0.counters } }

    private func abandon(_ request: UInt64) {
        state.withLock { $0.waiters.removeValue(forKey: request) }?.resume(returning: .stopped)
    }

    /// All that is to be known of the pipeline now.
    package var status: PipelineStatus {
        let now = world.clock.now
        return state.withLock { state in
            let machine = state.machine
            var activity = machine.activity(at: now)
            var wait = machine.waitsFor(at: now).map { detailed($0, state.slot?.ticket) }
            switch activity {
            case .loading:
                activity = .loading(state.progress.loaded)
                wait =
                    state.places?.hungFile.map { Wait(.fileSystem, detail: world.redact($0)) }
                    ?? state.places?.queue.map { Wait(.slot, detail: $0.description) }
                    ?? state.places?.memoryWait.map { Wait(.memory, detail: $0) }
            case .waiting: activity = wait.map(PipelineActivity.waiting) ?? activity
            default: break
            }
            let order = machine.run?.order
            var generation = state.generation
            if let signed = state.signed, signed.digest == generation?.digest { generation?.comment = signed.comment }
            var freshness = machine.freshness(at: now)
            // However young the check is that found that.
            if freshness == .fresh, state.generation?.isBehind == true { freshness = .stale }
            return PipelineStatus(
                name: name, activity: activity, waitsFor: wait,
                generation: generation.flatMap { $0.withdrawnSince == nil ? $0 : nil },
                withdrawn: generation.flatMap { $0.withdrawnSince == nil ? nil : $0 },
                freshness: freshness, lastCheck: state.lastCheck,
                originExpires: machine.settings.policy.honoursOrigin ? machine.originExpires : nil,
                expires: machine.expires, contentExpires: state.toldExpiry?.wall,
                lastCauses: order?.causes ?? machine.lastRun?.causes ?? [], run: order, lastRun: machine.lastRun,
                next: machine.nextRun(at: now), budget: machine.budgetUse(at: now),
                failing: machine.failing,
                refused: state.refused.flatMap { $0.keptUntil > world.clock.wallNow ? $0 : nil },
                branches: state.branches.report,
                more: PagesReport(state.pages), heldSince: state.heldSince)
        }
    }
}
