package import FreshetModel
internal import FreshetSignals

/// Commands and queries of the daemon, from any thread.
extension PipelineRunner {
    /// Requests a run, and awaits the end of the first run that starts after this call, or of the run that superseded
    /// it. If the task is cancelled, it returns ``RefreshAnswer/stopped``; the run continues.
    ///
    /// - Parameters:
    ///   - force: ignores `Retry-After`, the budget and an unreachable network too.
    ///   - unconditional: the run sends no validators.
    package func refresh(force: Bool, unconditional: Bool = false) async -> RefreshAnswer {
        await answer { mailbox.post(.refresh(request: $0, force: force, unconditional: unconditional)) }
    }

    /// Awaits the end of the first run whose number is higher than this one: returns immediately if it has ended.
    /// Requests no run. If the task is cancelled, it returns ``RefreshAnswer/stopped``; the run continues.
    package func firstRun(after number: UInt64) async -> RefreshAnswer {
        await answer { mailbox.post(.awaitRun(request: $0, after: number)) }
    }

    /// The number of the last run that has begun; 0: none.
    package var lastRunNumber: UInt64 { state.withLock { $0.machine.runs.lastNumber } }

    /// Requests a run without waiting for it; returns why the request is refused, if it is.
    @discardableResult
    package func requestRefresh(force: Bool, unconditional: Bool = false) -> RefreshRefusal? {
        if let refusal = refusal(force: force) { return refusal }
        mailbox.post(.refresh(request: nil, force: force, unconditional: unconditional))
        return nil
    }

    /// Why a request of the operator would be refused now; nil: it would be accepted.
    package func refusal(force: Bool) -> RefreshRefusal? {
        let now = world.clock.now
        return state.withLock { $0.machine.refusal(force: force, at: now) }
    }

    /// The active configuration.
    package var definition: PipelineDefinition { state.withLock { $0.configuration.definition } }

    /// Activates another configuration of the same pipeline. A run whose result would change is cancelled and started
    /// again; otherwise state, run and backoff stay. This requests no run: see ``begin(_:detail:)``.
    ///
    /// - Parameter network: the network of its target from now on; nil: as before.
    /// - Returns: whether the copy is not one of this configuration any more.
    @discardableResult
    package func reconfigure(
        _ definition: PipelineDefinition, network new: NetworkFeed? = nil, splay: Duration = .zero, share: Double = 0
    ) -> Bool {
        let settings = RefreshSettings(definition, splay: splay, share: share, clock: world.clock)
        return state.withLock { state in
            let sameProduct = state.configuration.replace(by: definition)
            // Posted under the lock, so that the machine gets the values in the order in which they were set.
            mailbox.post(
                .reconfigured(settings, sameProduct: sameProduct, parameters: state.configuration.values))
            let before = state.network
            state.network = new ?? before
            let isOther = before !== state.network
            if isOther { before.leave(mailbox) }
            state.network.follow(
                mailbox, receivesSignal: definition.refresh.on.contains(.network), posts: isOther)
            return !sameProduct
        }
    }

    /// Sets the directly connected networks on which the origin may be; nil: there are none. See
    /// ``RefreshMachine/Event/directNetworks(_:)``.
    package func directNetworksChanged(_ revision: UInt64?) {
        mailbox.post(.directNetworks(revision))
    }

    /// The published generation was changed by something other than a run, such as a rollback or a pin.
    package func publishes(_ generation: CurrentGeneration) {
        state.withLock { $0.copy.record(generation) }
        lookAtCopy()
    }

    /// Wakes the machine if it has to know the new state of the copy.
    private func lookAtCopy() {
        if state.withLock({ $0.copy.concernsMachine }) { mailbox.post(.timer) }
    }

    /// The operator has published content that a check rejected.
    package func accepted(_ generation: CurrentGeneration) {
        // Posted while the lock is held: see ``PipelineRun/end(_:)``.
        state.withLock { mailbox.post(.accepted(run: $0.copy.accept(generation))) }
    }

    /// Fires a signal for this pipeline alone: `start` if it is new, because its signals may have fired before it was
    /// added; `reload` if its copy is not one of its configuration any more.
    package func begin(_ signal: String, detail: String) {
        mailbox.post(.received([RunCause(signal, first: world.clock.now, detail: detail)]))
    }

    /// The rejected candidate is not kept any more.
    package func keepsNothingRejected() {
        state.withLock { $0.copy.forgetRejected() }
    }

    /// This rejected candidate is not kept any more, even if the run in progress rejected it.
    package func keepsNotRejected(_ digest: ContentDigest) {
        state.withLock { state in
            state.copy.forgetRejected(digest)
            state.runs.progress?.forgetRejected(digest)
        }
    }

    /// The copy was unpinned or released while it is withdrawn, so there is no new generation to report.
    package func releases() {
        state.withLock { $0.copy.release() }
        lookAtCopy()
    }

    /// Holds or releases the pipeline. While it is held, no run starts. A run in progress ends by itself.
    ///
    /// - Parameter since: nil: it is released.
    package func hold(since: WallTime?) {
        // Posted under the lock, so that the machine gets the changes in their order.
        state.withLock { state in
            state.heldSince = since
            mailbox.post(.held(since != nil))
        }
    }

    /// The counts of its runs since the runner was made.
    package var counters: RunCounters { state.withLock { $0.runs.counters } }

    /// The current generation, published or withdrawn, with the comment of its signature.
    package var copy: CurrentGeneration? { state.withLock { $0.copy.current } }

    /// The current status of the pipeline.
    package var status: PipelineStatus {
        let now = world.clock.now
        return state.withLock { state in
            let machine = state.machine
            var activity = machine.activity(at: now)
            var wait = machine.waitsFor(at: now).map {
                state.permit.detailed($0, by: world.requestLimiter)
            }
            switch activity {
            case .loading:
                activity = .loading(state.runs.progress?.loaded ?? LoadProgress())
                wait =
                    state.runs.permits?.hungFile.map { Wait(.fileSystem, detail: world.redact($0)) }
                    ?? state.runs.permits?.queue.map { Wait(.permit, detail: $0.description) }
                    ?? state.runs.permits?.memoryWait.map { Wait(.memory, detail: $0) }
            case .waiting: activity = wait.map(PipelineActivity.waiting) ?? activity
            default: break
            }
            let order = machine.phase.run?.order
            let generation = state.copy.current
            var freshness = machine.freshness(at: now)
            // However recent the check was: the source has other content.
            if freshness == .fresh, state.copy.generation?.isBehind == true { freshness = .stale }
            return PipelineStatus(
                name: name, activity: activity, waitsFor: wait,
                generation: generation.flatMap { $0.withdrawnSince == nil ? $0 : nil },
                withdrawn: generation.flatMap { $0.withdrawnSince == nil ? nil : $0 },
                copyError: generation == nil ? state.copy.error : nil, freshness: freshness,
                lastCheck: state.copy.lastCheck,
                originExpires: machine.settings.policy.honoursOrigin ? machine.schedule.originExpires : nil,
                expires: machine.expires, contentExpires: state.copy.notices.expiry?.wall,
                lastCauses: order?.causes ?? machine.runs.last?.causes ?? [],
                ignored: machine.phase.run?.ignored ?? machine.runs.last?.ignored ?? 0, run: order,
                lastRun: machine.runs.last,
                next: machine.nextRun(at: now), budget: machine.budgetUse(at: now),
                failing: machine.schedule.failing,
                rejected: state.copy.rejected.flatMap { $0.keptUntil > world.clock.wallNow ? $0 : nil },
                branches: state.runs.branches,
                more: PagesReport(state.runs.pages), heldSince: state.heldSince,
                mirror: state.configuration.definition.mirrors == nil
                    ? nil : state.runs.progress?.mirror ?? state.runs.lastMirror)
        }
    }
}
