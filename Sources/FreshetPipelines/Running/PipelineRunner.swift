package import FreshetModel
internal import FreshetSignals

/// Runs one pipeline: it feeds the refresh machine with events and performs the machine's actions.
///
/// The engine's task performs its steps; commands may come from any thread.
package final class PipelineRunner: Sendable {
    package let name: String

    let world: EngineDependencies
    let mailbox: Mailbox<RefreshMachine.Event>
    let state: Lock<State>
    private let timer: any EngineTimer
    private let send: @Sendable (PipelineReport) -> Void
    private let probes: ProbeCoordinator
    /// The stored state with its wall-clock times, which are converted again when the wall clock is stepped.
    private let remembered: PersistentState
    private let seed: UInt64

    struct State {
        var machine: RefreshMachine
        var definition: PipelineDefinition
        var parameters: ParameterSettings
        /// Set parameters that are not valid with the configuration any more, not reported yet.
        var droppedParameters: [String]
        var subscription: CauseSubscription
        /// The current generation, published or withdrawn.
        var generation: CurrentGeneration?
        /// The state of the generation that the machine knows; nil: it needs none.
        var notifiedCopy: ReportedCopy?
        /// The expiry of the content that the machine knows.
        var notifiedExpiry: ReportedExpiry?
        /// The machine has to get ``RefreshMachine/Event/copyLost`` before the state of another copy.
        var isCopyLost = false
        var lastCheck: WallTime?

        /// The permit of the next run, requested or granted.
        var permit: (number: UInt64, ticket: RequestLimiter.Ticket, origin: HTTPOrigin?)?
        /// The permits of the run in progress, or of the last run.
        var permits: RunPermits?
        /// Set to end the run in progress.
        var interruption: CurrentValue<Bool>?
        /// The content that a check rejected last.
        var rejected: RejectedCandidate?
        /// The run that fetched `rejected`; nil: it was before a restart of the daemon.
        var rejectedRun: UInt64?
        /// The rejection for conditional requests.
        var rejection: KnownRejection?
        /// The trusted comment of the last signed content.
        var signed: SignedComment?
        /// Since when the operator holds the pipeline.
        var heldSince: WallTime?
        /// The counts of its runs.
        var counters = RunCounters()
        /// The progress of the run in progress, or of the last run.
        var progress = RunProgress()
        /// The failing branches.
        var branches = BranchStatusTable()
        /// The sets of pages that may be continued after the last run.
        var pages: [PagesState]

        var lastRequest: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<RefreshAnswer, Never>] = [:]
        /// The callers that wait for the end of the runner.
        var closers: [CheckedContinuation<Void, Never>] = []
        var isClosed = false

        /// Records that are still to be written to the store, in order.
        var records: [Record] = []
        var isWriting = false

        /// Sets the current generation, unless a newer one is known already.
        mutating func recordGeneration(_ new: CurrentGeneration?) {
            if let new, new.revision >= generation?.revision ?? 0 { generation = new }
            // The candidate has become the copy, in whatever way.
            if let digest = new?.digest, digest == rejected?.digest { rejected = nil }
        }

        /// The current generation with the comment of its signature.
        var copy: CurrentGeneration? {
            var copy = generation
            if let signed, signed.digest == copy?.digest { copy?.comment = signed.comment }
            return copy
        }

        /// The copy, if the run in progress, or the last run, has committed it and readers find it.
        var committed: CurrentGeneration? {
            guard let committed = progress.committed, let copy, copy.number == committed, copy.withdrawnSince == nil
            else { return nil }
            return copy
        }
    }

    /// A record for the store.
    enum Record: Sendable {
        case run(RunRecord)
        case retryAfter(WallTime?)
        case requests([RequestBurst])
        case parameters
    }

    init(
        _ definition: PipelineDefinition, _ settings: RefreshSettings, remembered: PersistentState,
        network: NetworkState, world: EngineDependencies, subscription: CauseSubscription,
        mailbox: Mailbox<RefreshMachine.Event>, probes: ProbeCoordinator,
        seed: UInt64, report: @escaping @Sendable (PipelineReport) -> Void
    ) {
        name = definition.name
        self.world = world
        send = report
        self.mailbox = mailbox
        self.probes = probes
        self.seed = seed
        timer = world.clock.makeTimer { mailbox.post(.timer) }
        let now = world.clock.now
        var known = remembered
        let parameters = ParameterSettings(remembered: remembered.parameters, for: definition)
        let values = parameters.values(for: definition)
        if let binding = remembered.binding, binding != definition.validatorBinding(with: values) {
            known.isOfOtherConfiguration = true
        }
        // The machine has the record.
        known.lastRunRecord = nil
        self.remembered = known
        let memory = StoredRefreshState(
            known, now: now, wallNow: world.clock.wallNow, tolerance: settings.policy.freshFor)
        let lastRun = remembered.lastRunRecord.map {
            RunSummary(remembered: $0, now: now, wallNow: world.clock.wallNow)
        }
        let machine = RefreshMachine(
            settings, network: network, memory: memory, lastRun: lastRun, parameters: values,
            jitter: Jitter(seed: seed), now: now)
        state = Lock(
            State(
                machine: machine, definition: definition, parameters: parameters,
                droppedParameters: remembered.parameters.keys.filter { parameters.set[$0] == nil }.sorted(),
                subscription: subscription,
                generation: remembered.generation,
                notifiedCopy: machine.copy.withdrawal == nil ? nil : ReportedCopy(remembered.generation),
                lastCheck: remembered.lastCheck,
                rejected: remembered.rejected, signed: remembered.signed, heldSince: remembered.heldSince,
                pages: remembered.generation == nil
                    ? [] : PartCache.pages(remembered.pages, of: definition, with: values)))
    }

    /// Takes all events and performs the resulting actions.
    func step(in group: inout DiscardingTaskGroup) {
        let dropped = state.withLock { state in
            defer { state.droppedParameters = [] }
            return state.droppedParameters
        }
        if !dropped.isEmpty {
            report(.parametersDropped(dropped))
            enqueue(.parameters, in: &group)
        }
        var events = mailbox.take()
        let received = state.withLock { $0.subscription }.take()
        if !received.isEmpty { events.append(.received(received.map(RunCause.init))) }
        // All other events come before the grant of a permit, so that the run that takes the permit considers them.
        if let grant = events.firstIndex(where: \.isGrant), grant < events.endIndex - 1 {
            events = events.filter { !$0.isGrant } + events.filter(\.isGrant)
        }
        perform(events, in: &group)
    }

    /// Replaces the subscription. Signals that the old subscription has received are kept.
    func subscribe(to subscription: CauseSubscription) {
        let before = state.withLock { state in
            defer { state.subscription = subscription }
            return state.subscription
        }
        let received = before.take()
        if !received.isEmpty { mailbox.post(.received(received.map(RunCause.init))) }
    }

    /// The wall clock was stepped: converts the stored times again.
    func clockStepped() {
        let now = world.clock.now
        let wallNow = world.clock.wallNow
        let memory = state.withLock { state in
            let schedule = state.machine.schedule
            if schedule.memory == nil, let success = schedule.lastSuccess { state.lastCheck = wall(success) }
            // Content that was rejected because of its time may pass now.
            state.rejection = nil
            return StoredRefreshState(
                remembered, now: now, wallNow: wallNow, tolerance: state.machine.settings.policy.freshFor)
        }
        mailbox.post(.clockStepped(memory))
    }

    /// Begins the stop: after that, only the end of a run is awaited.
    func beginStop(in group: inout DiscardingTaskGroup) {
        perform(mailbox.take() + [.stopped], in: &group)
    }

    /// Whether the runner has stopped completely.
    var isOver: Bool {
        state.withLock { $0.machine.phase == .stopped(nil) && !$0.isWriting }
    }

    /// Stops the runner and awaits its end.
    func stop() async {
        mailbox.post(.stopped)
        await withCheckedContinuation { closer in
            let isClosed = state.withLock { state in
                if !state.isClosed { state.closers.append(closer) }
                return state.isClosed
            }
            if isClosed { closer.resume() }
        }
    }

    /// The runner has stopped: answers all remaining requests.
    func close() {
        timer.disarm()
        mailbox.close()
        let (waiters, closers) = state.withLock { state in
            state.isClosed = true
            defer {
                state.waiters = [:]
                state.closers = []
            }
            return (state.waiters, state.closers)
        }
        for waiter in waiters.values { waiter.resume(returning: .stopped) }
        for closer in closers { closer.resume() }
    }

    /// Passes events to the machine and performs its actions, and those of the events that follow immediately.
    private func perform(_ events: [RefreshMachine.Event], in group: inout DiscardingTaskGroup) {
        var events = events
        repeat {
            let now = world.clock.now
            let actions = state.withLock { state in
                let copyChanges = copyEvents(&state, now) + expiryEvents(&state, now)
                return state.machine.handle(copyChanges + events, now: now)
            }
            events = []
            for action in actions { perform(action, in: &group, &events) }
        } while !events.isEmpty
    }

    private func perform(
        _ action: RefreshMachine.Action, in group: inout DiscardingTaskGroup, _ events: inout [RefreshMachine.Event]
    ) {
        switch action {
        case .requestPermit(let number):
            // Without a permit, the machine gets one more event, so that it can report the wait.
            events.append(requestPermit(number) ? .permitGranted(number) : .timer)
        case .releasePermit(let number):
            releasePermit(number)
        case .prove(let request?):
            probes.subscribe(request, mailbox.key) { [mailbox] in mailbox.post(.proof($0)) }
        case .prove(nil):
            probes.unsubscribe(mailbox.key)
        case .start(let order):
            start(order, in: &group)
        case .withdraw, .putBack:
            settleCopy(withdraws: action == .withdraw, in: &group)
        case .cancel:
            state.withLock { $0.interruption }?.value = true
        case .wake(at: let instant?):
            timer.arm(at: instant)
        case .wake(at: nil):
            timer.disarm()
        case .answer(let request, let answer):
            state.withLock { $0.waiters.removeValue(forKey: request) }?.resume(returning: answer)
        case .rememberRetryAfter(let instant):
            enqueue(.retryAfter(instant.map(wall)), in: &group)
        case .rememberRequests(let spent):
            let requests = spent.map {
                RequestBurst(
                    first: wall($0.first), last: wall($0.last),
                    count: $0.count)
            }
            enqueue(.requests(requests), in: &group)
        case .report(.runEnded(let summary, let next)):
            let (copy, committed) = state.withLock { state -> (CurrentGeneration?, CurrentGeneration?) in
                state.interruption = nil
                state.counters.record(summary, state.progress)
                return (state.copy, state.committed)
            }
            enqueue(.run(record(of: summary)), in: &group)
            send(PipelineReport(.runEnded(summary, next: next), copy: copy, committed: committed))
        case .report(let event):
            report(detailed(event))
        }
    }

    /// Reports an event with the current copy.
    func report(_ event: EngineEvent) {
        send(PipelineReport(event, copy: state.withLock { $0.copy }))
    }

    private func start(_ order: RunOrder, in group: inout DiscardingTaskGroup) {
        let interruption = CurrentValue(false)
        let progress = RunProgress(allowance: order.allowance)
        let (definition, isTruncated, permits, rejection) = state.withLock { state in
            state.interruption = interruption
            state.progress = progress
            // The permit becomes the run's first permit, which may be needed only for its first request.
            let permit = state.permit
            state.permit = nil
            let permits = RunPermits(
                world.requestLimiter, for: mailbox.key, beginningWith: permit?.ticket, at: permit?.origin,
                stalls: { [mailbox] in mailbox.post(.stalled(run: order.run, $0)) })
            state.permits = permits
            return (state.definition, state.generation?.truncated ?? false, permits, state.rejection)
        }
        var more: RunExecutor.More?
        if case .loadMore(let place) = order.reason { more = RunExecutor.More(place: place, isTruncated: isTruncated) }
        var body = RunExecutor(
            definition: definition, world: world.with(permits), parameters: order.parameters, epoch: order.epoch,
            progress: progress, seed: seed &+ order.run, more: more,
            publication: more == nil ? publication : nil)
        body.rejection = rejection
        body.isUnconditional = order.isUnconditional
        group.addTask { [self, body] in
            let result = await interruptible(by: interruption, otherwise: .cancelled) {
                await self.result(of: body, order.run)
            }
            // If the configuration was replaced during the run, the committed file gets the new mode and group.
            let definition = self.definition
            if definition.cache != body.definition.cache { await world.store.setAccess(definition) }
            // One that succeeded has looked.
            if case .succeeded = result {} else { await restoreCopy() }
            permits.close()
            end(body, order.run, result)
        }
    }

    /// Reports the result of a run, unless an operator has accepted the content that the run rejected: then the run has
    /// confirmed the copy.
    private func end(_ body: RunExecutor, _ run: UInt64, _ result: RunResult) {
        let (now, wallNow) = (world.clock.now, world.clock.wallNow)
        // Posted while the lock is held: an acceptance comes to the machine before this result and is seen here, or
        // after it.
        state.withLock { state in
            var result = result
            if case .failed = result, let rejected = body.progress.rejected?.snapshot, let copy = state.generation,
                copy.digest == rejected.digest
            {
                (state.rejected, state.rejection) = (nil, nil)
                state.lastCheck = wallNow
                result = .succeeded(changed: false, generation: copy.number, at: now, flaw: nil, expires: nil)
            }
            mailbox.post(.ended(run: run, result, requests: body.progress.requests))
        }
    }

    /// The publication of partial results.
    private var publication: RunExecutor.Publication {
        RunExecutor.Publication(
            isAllowed: { [self] in
                // A partial result does not replace a copy that is pinned, withdrawn or rolled back to.
                state.withLock {
                    $0.generation.map { !$0.isBehind && $0.pinnedSince == nil && $0.withdrawnSince == nil } ?? true
                }
            },
            published: { [self] generation in state.withLock { $0.recordGeneration(generation) } })
    }

    private func result(of body: RunExecutor, _ run: UInt64) async -> RunResult {
        do throws(FetchError) {
            let success = try await body.run()
            if success.changed, let generation = success.generation { body.progress.recordCommit(generation.number) }
            if let comment = body.progress.signedComment { await signed(comment, success) }
            let wallNow = world.clock.wallNow
            let now = world.clock.now
            let failures = body.progress.failures.map(redacted)
            let (generation, flaw) = state.withLock { state in
                // The source has other content now; a further page says nothing about that.
                if body.more == nil { state.rejection = nil }
                state.recordGeneration(success.generation)
                state.pages = success.pages
                // A run for a further page makes no other request.
                guard body.more == nil else { return (state.generation?.number, RunFailure?.none) }
                state.branches.record(failures, of: body.progress.loaded.branches, at: now)
                let flaw = state.branches.flaw
                if flaw == nil { state.lastCheck = wallNow }
                return (state.generation?.number, flaw)
            }
            return .succeeded(
                changed: success.changed, generation: generation, at: now, flaw: flaw, expires: success.expiry?.instant)
        } catch {
            if let rejected = body.progress.rejected {
                state.withLock { state in
                    if let snapshot = rejected.snapshot {
                        (state.rejected, state.rejectedRun) = (rejected.isGone ? nil : snapshot, run)
                    }
                    state.rejection = rejected.known
                }
            }
            switch error {
            case .cancelled: return .cancelled
            case .failed(var failure):
                failure.message = world.redact(failure.message)
                if body.progress.committed != nil { failure.message += "; the partial result is published" }
                return .failed(failure)
            }
        }
    }

    /// Stores the publisher's trusted comment about the copy.
    private func signed(_ comment: String, _ success: RunExecutor.Success) async {
        if success.changed { report(.signed(comment: comment)) }
        // If other content is held back, the comment is about that content.
        guard let generation = success.generation, success.changed || !generation.isBehind else { return }
        let signed = SignedComment(digest: generation.digest, comment: comment)
        let isNew = state.withLock { state in
            defer { state.signed = signed }
            return state.signed != signed
        }
        if isNew { await world.store.rememberSigned(name, signed) }
    }

    private func redacted(_ branch: BranchFailure) -> BranchFailure {
        var branch = branch
        branch.failure.message = world.redact(branch.failure.message)
        return branch
    }

    // MARK: Permits

    /// Requests a permit; whether it was granted immediately.
    private func requestPermit(_ number: UInt64) -> Bool {
        // The permit is for the run's first request; the other requests have their own permits.
        let origin = state.withLock { $0.definition }.source.origin
        let reply = world.requestLimiter.request(for: mailbox.key, at: origin) { [mailbox] in
            mailbox.post(.permitGranted(number))
        }
        switch reply {
        case .granted(let ticket):
            state.withLock { $0.permit = (number, ticket, origin) }
            return true
        case .queued(let ticket):
            state.withLock { $0.permit = (number, ticket, origin) }
            return false
        }
    }

    /// The wait with the limiter's description of the queue.
    func detailed(_ wait: Wait, _ ticket: RequestLimiter.Ticket?) -> Wait {
        guard wait.reason == .permit, let ticket, let queue = world.requestLimiter.queue(of: ticket) else {
            return wait
        }
        var wait = wait
        wait.detail = queue.description
        return wait
    }

    private func detailed(_ event: EngineEvent) -> EngineEvent {
        let ticket = state.withLock { $0.permit?.ticket }
        switch event {
        case .waitingBegan(let wait): return .waitingBegan(detailed(wait, ticket))
        case .stateChanged(.waiting(let wait)): return .stateChanged(.waiting(detailed(wait, ticket)))
        default: return event
        }
    }

    private func releasePermit(_ number: UInt64) {
        let ticket = state.withLock { state -> RequestLimiter.Ticket? in
            guard let permit = state.permit, permit.number == number else { return nil }
            state.permit = nil
            return permit.ticket
        }
        if let ticket { world.requestLimiter.release(ticket) }
    }

    // MARK: Records for the store

    /// Appends a record to the queue for the store; the pipeline does not wait for the disk.
    private func enqueue(_ record: Record, in group: inout DiscardingTaskGroup) {
        let isIdle = state.withLock { state in
            state.records.append(record)
            defer { state.isWriting = true }
            return !state.isWriting
        }
        guard isIdle else { return }
        group.addTask { [self] in await write() }
    }

    private func write() async {
        while let record = nextRecord() {
            switch record {
            case .run(let record): await world.store.record(record)
            case .retryAfter(let until): await world.store.rememberRetryAfter(name, until: until)
            case .requests(let requests): await world.store.rememberRequests(name, requests)
            case .parameters: await rememberParameters()
            }
        }
    }

    private func nextRecord() -> Record? {
        state.withLock { state in
            if state.records.isEmpty {
                state.isWriting = false
                // A caller that waits for the end may wait for this write.
                if state.machine.phase.isStopped { mailbox.post(.timer) }
                return nil
            }
            return state.records.removeFirst()
        }
    }

    private func record(of summary: RunSummary) -> RunRecord {
        let started = wall(summary.started)
        // Computed from the start, since a second reading of the clocks would give another duration.
        let ended = started.advanced(by: summary.duration)
        return RunRecord(
            pipeline: name, number: summary.run, causes: summary.causes.summary,
            started: started, ended: ended, outcome: summary.outcome, error: summary.failure?.message,
            generation: summary.generation)
    }

    /// An instant by the current wall clock.
    package func wall(_ instant: ContinuousClock.Instant) -> WallTime {
        world.clock.wallNow.advanced(by: world.clock.now.duration(to: instant))
    }
}

extension RunCause {
    /// Converts a cause.
    fileprivate init(_ cause: Cause) {
        self.init(
            cause.first.signal, count: cause.count, first: cause.first.instant, last: cause.last.instant,
            detail: cause.last.detail, number: cause.last.number)
    }
}
