internal import FreshetSignals

/// One pipeline at work: its refresh machine, and what performs what the machine says.
///
/// The engine's task takes its steps; commands may come from any thread.
package final class PipelineRunner: Sendable {
    package let name: String

    let world: EngineDependencies
    let mailbox: Mailbox<RefreshMachine.Event>
    let state: Lock<State>
    private let timer: any EngineTimer
    let report: @Sendable (EngineEvent) -> Void
    private let probes: ProbeCoordinator
    /// By the wall clock, for when that is stepped.
    private let remembered: PersistentState
    private let seed: UInt64

    struct State {
        var machine: RefreshMachine
        var definition: PipelineDefinition
        var parameters: ParameterSettings
        /// Parameters that were set and do not hold with the configuration, to be told.
        var droppedParameters: [String]
        var subscription: CauseSubscription
        /// What readers see, or would if it were not withdrawn.
        var generation: CurrentGeneration?
        /// What the machine was told of that; nil: it need not know.
        var toldCopy: ReportedCopy?
        /// The time that the content states, as the machine knows it.
        var toldExpiry: ReportedExpiry?
        /// The machine is to be told that the copy was withdrawn and is not kept, before it is told of another one.
        var isCopyLost = false
        /// Wall-clock microseconds since 1970.
        var lastCheck: Int64?

        /// What a run begins with, asked for or there.
        var slot: (number: UInt64, ticket: RequestLimiter.Ticket, origin: HTTPOrigin?)?
        /// Of the run under way, or of the last one.
        var places: RunPermits?
        /// Set to end the run under way.
        var interruption: CurrentValue<Bool>?
        /// What a check refused last.
        var refused: RejectedSnapshot?
        /// The run that brought it; nil: one of a life before.
        var refusedRun: UInt64?
        /// What may be asked of it.
        var refusal: KnownRejection?
        /// What the publisher said of the last content that was signed.
        var signed: SignedComment?
        /// Since when the operator holds it: wall-clock microseconds since 1970.
        var heldSince: Int64?
        /// What came of its runs so far.
        var counters = RunCounters()
        /// How far the run under way has come, or the last one came.
        var progress = RunProgress()
        /// What is the matter with its branches.
        var branches = BranchStatusTable()
        /// Its sets of pages that may be continued, as the last run left them.
        var pages: [PagesState]

        var lastRequest: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<RefreshAnswer, Never>] = [:]
        /// Who waits until it is over.
        var closers: [CheckedContinuation<Void, Never>] = []
        var isClosed = false

        /// What the store is still to be told, one after the other.
        var notes: [Note] = []
        var isWriting = false

        /// Notes what readers see, unless something newer is known already.
        mutating func offer(_ new: CurrentGeneration?) {
            if let new, new.turn >= generation?.turn ?? 0 { generation = new }
            // By whatever way it became the copy.
            if let digest = new?.digest, digest == refused?.digest { refused = nil }
        }
    }

    /// Something for the store to remember.
    enum Note: Sendable {
        case run(RunRecord)
        case retryAfter(Int64?)
        case requests([RequestBurst])
        case parameters
    }

    init(
        _ definition: PipelineDefinition, _ settings: RefreshSettings, remembered: PersistentState,
        network: NetworkState, world: EngineDependencies, subscription: CauseSubscription,
        mailbox: Mailbox<RefreshMachine.Event>, probes: ProbeCoordinator,
        seed: UInt64, report: @escaping @Sendable (EngineEvent) -> Void
    ) {
        name = definition.name
        self.world = world
        self.report = report
        self.mailbox = mailbox
        self.probes = probes
        self.seed = seed
        timer = world.clock.makeTimer { mailbox.post(.timer) }
        let now = world.clock.now
        var known = remembered
        let parameters = ParameterSettings(remembered: remembered.parameters, for: definition)
        let values = parameters.values(for: definition)
        if let binding = remembered.binding, binding != definition.validatorBinding(with: values) {
            known.isOfAnother = true
        }
        // The machine has it.
        known.lastRunRecord = nil
        self.remembered = known
        let memory = StoredRefreshState(
            known, now: now, wallNow: world.clock.wallNow, tolerance: settings.policy.freshFor)
        var machine = RefreshMachine(
            settings, network: network, memory: memory, parameters: values, jitter: Jitter(seed: seed), now: now)
        machine.lastRun = remembered.lastRunRecord.flatMap {
            RunSummary(remembered: $0, now: now, wallNow: world.clock.wallNow)
        }
        state = Lock(
            State(
                machine: machine, definition: definition, parameters: parameters,
                droppedParameters: remembered.parameters.keys.filter { parameters.set[$0] == nil }.sorted(),
                subscription: subscription,
                generation: remembered.generation,
                toldCopy: machine.withdrawal == nil ? nil : ReportedCopy(remembered.generation),
                lastCheck: remembered.lastCheck,
                refused: remembered.refused, signed: remembered.signed, heldSince: remembered.heldSince,
                pages: remembered.generation == nil
                    ? [] : PartCache.pages(remembered.pages, of: definition, with: values)))
    }

    /// Takes what has come and does what follows from it.
    func step(in group: inout DiscardingTaskGroup) {
        let dropped = state.withLock { state in
            defer { state.droppedParameters = [] }
            return state.droppedParameters
        }
        if !dropped.isEmpty {
            report(.parametersDropped(dropped))
            note(.parameters, in: &group)
        }
        var events = mailbox.take()
        let heard = state.withLock { $0.subscription }.take()
        if !heard.isEmpty { events.append(.heard(heard.map(RunCause.init))) }
        // The run that takes a slot goes by all that is known by now.
        if let grant = events.firstIndex(where: \.isGrant), grant < events.endIndex - 1 {
            events = events.filter { !$0.isGrant } + events.filter(\.isGrant)
        }
        perform(events, in: &group)
    }

    /// Hears another signal from now on, and forgets nothing of what it has heard.
    func listen(to subscription: CauseSubscription) {
        let before = state.withLock { state in
            defer { state.subscription = subscription }
            return state.subscription
        }
        let heard = before.take()
        if !heard.isEmpty { mailbox.post(.heard(heard.map(RunCause.init))) }
    }

    /// The wall clock was stepped: instants that came from it, and those that are shown by it, are others now.
    func clockStepped() {
        let now = world.clock.now
        let wallNow = world.clock.wallNow
        let memory = state.withLock { state in
            if state.machine.memory == nil, let success = state.machine.lastSuccess { state.lastCheck = wall(success) }
            // What was refused for its time may be right by this one.
            state.refusal = nil
            return StoredRefreshState(
                remembered, now: now, wallNow: wallNow, tolerance: state.machine.settings.policy.freshFor)
        }
        mailbox.post(.clockStepped(memory))
    }

    /// Begins to end: after that only the end of a run is awaited.
    func beginStop(in group: inout DiscardingTaskGroup) {
        perform(mailbox.take() + [.stopped], in: &group)
    }

    /// It was stopped, and nothing of it goes on.
    var isOver: Bool {
        state.withLock { $0.machine.isStopped && $0.machine.run == nil && !$0.isWriting }
    }

    /// Ends it and awaits that.
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

    /// It is over: answers all who wait still.
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

    /// Gives events to the machine and does what it says, and what comes of that at once.
    private func perform(_ events: [RefreshMachine.Event], in group: inout DiscardingTaskGroup) {
        var events = events
        repeat {
            let now = world.clock.now
            let actions = state.withLock { state in
                let news = copyNews(&state, now) + expiryNews(&state, now)
                return state.machine.handle(news + events, now: now)
            }
            events = []
            for action in actions { perform(action, in: &group, &events) }
        } while !events.isEmpty
    }

    private func perform(
        _ action: RefreshMachine.Action, in group: inout DiscardingTaskGroup, _ events: inout [RefreshMachine.Event]
    ) {
        switch action {
        case .requestSlot(let number):
            // Without one, the machine is asked once more, so that it can say that it waits.
            events.append(requestSlot(number) ? .slotGranted(number) : .timer)
        case .releaseSlot(let number):
            releaseSlot(number)
        case .prove(let wish?):
            probes.want(wish, mailbox.key) { [mailbox] in mailbox.post(.proof($0)) }
        case .prove(nil):
            probes.wantNothing(mailbox.key)
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
            note(.retryAfter(instant.map(wall)), in: &group)
        case .rememberRequests(let spent):
            let requests = spent.map { RequestBurst(first: wall($0.first), last: wall($0.last), count: $0.count) }
            note(.requests(requests), in: &group)
        case .report(let event):
            if case .runEnded(let summary, _) = event {
                state.withLock { state in
                    state.interruption = nil
                    state.counters.note(summary, state.progress)
                }
                note(.run(record(of: summary)), in: &group)
            }
            report(detailed(event))
        }
    }

    private func start(_ order: RunOrder, in group: inout DiscardingTaskGroup) {
        let interruption = CurrentValue(false)
        let progress = RunProgress(allowance: order.allowance)
        let (definition, isTruncated, places, refusal) = state.withLock { state in
            state.interruption = interruption
            state.progress = progress
            // From now on it is the run's, which may need it no longer than for its first request.
            let slot = state.slot
            state.slot = nil
            let places = RunPermits(
                world.slots, for: mailbox.key, beginningWith: slot?.ticket, at: slot?.origin,
                stalls: { [mailbox] in mailbox.post(.stalled(run: order.run, $0)) })
            state.places = places
            return (state.definition, state.generation?.truncated ?? false, places, state.refusal)
        }
        var more: RunExecutor.More?
        if case .loadMore(let place) = order.reason { more = RunExecutor.More(place: place, isTruncated: isTruncated) }
        var body = RunExecutor(
            definition: definition, world: world.with(places), parameters: order.parameters, epoch: order.epoch,
            progress: progress, seed: seed &+ order.run, more: more,
            publication: more == nil ? publication : nil)
        body.refusal = refusal
        body.isUnconditional = order.isUnconditional
        group.addTask { [self, body] in
            let result = await interruptible(by: interruption, otherwise: .cancelled) {
                await self.result(of: body, order.run)
            }
            // What it committed has the rights of its own configuration: of one that was replaced meanwhile.
            let definition = self.definition
            if definition.cache != body.definition.cache { await world.store.setAccess(definition) }
            places.close()
            mailbox.post(.ended(run: order.run, result, requests: progress.requests))
        }
    }

    /// For a run that shows readers what it has before it is over.
    private var publication: RunExecutor.Publication {
        RunExecutor.Publication(
            isWanted: { [self] in
                // A copy that was rolled back to or is pinned is not replaced by a part of another one.
                state.withLock {
                    $0.generation.map { !$0.isBehind && $0.pinnedSince == nil && $0.withdrawnSince == nil } ?? true
                }
            },
            published: { [self] generation in state.withLock { $0.offer(generation) } })
    }

    private func result(of body: RunExecutor, _ run: UInt64) async -> RunResult {
        do throws(FetchError) {
            let success = try await body.run()
            if let comment = body.progress.signedComment { await signed(comment, success) }
            let wallNow = world.clock.wallNow
            let now = world.clock.now
            let failures = body.progress.failures.map(redacted)
            let (generation, flaw) = state.withLock { state in
                // What is there now is other content; a further page says nothing of it.
                if body.more == nil { state.refusal = nil }
                state.offer(success.generation)
                state.pages = success.pages
                // Nothing else was asked for.
                guard body.more == nil else { return (state.generation?.number, RunFailure?.none) }
                state.branches.note(failures, of: body.progress.loaded.branches, at: now)
                let flaw = state.branches.flaw
                if flaw == nil { state.lastCheck = wallNow }
                return (state.generation?.number, flaw)
            }
            return .succeeded(
                changed: success.changed, generation: generation, at: now, flaw: flaw, expires: success.expiry?.instant)
        } catch {
            if let refused = body.progress.refused {
                state.withLock { state in
                    if let snapshot = refused.snapshot {
                        (state.refused, state.refusedRun) = (refused.isGone ? nil : snapshot, run)
                    }
                    state.refusal = refused.known
                }
            }
            switch error {
            case .cancelled: return .cancelled
            case .failed(var failure):
                failure.message = world.redact(failure.message)
                if body.progress.publications > 0 { failure.message += "; what was in by then is published" }
                return .failed(failure)
            }
        }
    }

    /// Keeps what the publisher says of what has become the copy, or is it.
    private func signed(_ comment: String, _ success: RunExecutor.Success) async {
        if success.changed { report(.signed(comment: comment)) }
        // One that is held back is of other content.
        guard let generation = success.generation, success.changed || !generation.isBehind else { return }
        let signed = SignedComment(digest: generation.digest, comment: comment)
        let isNews = state.withLock { state in
            defer { state.signed = signed }
            return state.signed != signed
        }
        if isNews { await world.store.rememberSigned(name, signed) }
    }

    private func redacted(_ branch: BranchFailure) -> BranchFailure {
        var branch = branch
        branch.failure.message = world.redact(branch.failure.message)
        return branch
    }

    // MARK: Slots

    /// Whether there is one at once.
    private func requestSlot(_ number: UInt64) -> Bool {
        // For the first request of the run; the others take places of their own.
        let origin = state.withLock { $0.definition }.source.origin
        let reply = world.slots.request(for: mailbox.key, at: origin) { [mailbox] in
            mailbox.post(.slotGranted(number))
        }
        switch reply {
        case .granted(let ticket):
            state.withLock { $0.slot = (number, ticket, origin) }
            return true
        case .queued(let ticket):
            state.withLock { $0.slot = (number, ticket, origin) }
            return false
        }
    }

    /// The wait with what it waits for, where only the desk knows that.
    func detailed(_ wait: Wait, _ ticket: RequestLimiter.Ticket?) -> Wait {
        guard wait.reason == .slot, let ticket, let queue = world.slots.queue(of: ticket) else { return wait }
        var wait = wait
        wait.detail = queue.description
        return wait
    }

    private func detailed(_ event: EngineEvent) -> EngineEvent {
        let ticket = state.withLock { $0.slot?.ticket }
        switch event {
        case .waitingBegan(let wait): return .waitingBegan(detailed(wait, ticket))
        case .stateChanged(.waiting(let wait)): return .stateChanged(.waiting(detailed(wait, ticket)))
        default: return event
        }
    }

    private func releaseSlot(_ number: UInt64) {
        let ticket = state.withLock { state -> RequestLimiter.Ticket? in
            guard let slot = state.slot, slot.number == number else { return nil }
            state.slot = nil
            return slot.ticket
        }
        if let ticket { world.slots.release(ticket) }
    }

    // MARK: Notes for the store

    /// Has the store remember something after what it is to remember already; the pipeline does not wait for the disk.
    private func note(_ note: Note, in group: inout DiscardingTaskGroup) {
        let isIdle = state.withLock { state in
            state.notes.append(note)
            defer { state.isWriting = true }
            return !state.isWriting
        }
        guard isIdle else { return }
        group.addTask { [self] in await write() }
    }

    private func write() async {
        while let note = nextNote() {
            switch note {
            case .run(let record): await world.store.record(record)
            case .retryAfter(let until): await world.store.rememberRetryAfter(name, until: until)
            case .requests(let requests): await world.store.rememberRequests(name, requests)
            case .parameters: await rememberParameters()
            }
        }
    }

    private func nextNote() -> Note? {
        state.withLock { state in
            if state.notes.isEmpty {
                state.isWriting = false
                // Who waits for the end may wait for this.
                if state.machine.isStopped { mailbox.post(.timer) }
                return nil
            }
            return state.notes.removeFirst()
        }
    }

    private func record(of summary: RunSummary) -> RunRecord {
        let started = wall(summary.started)
        // By the same look at the clocks: they are read one after the other, and with another one it took another time.
        let ended = started + summary.duration.microseconds
        return RunRecord(
            pipeline: name, run: summary.run, causes: summary.causes.summary, started: started, ended: ended,
            outcome: summary.outcome.rawValue, error: summary.failure?.message, generation: summary.generation)
    }

    /// An instant by the wall clock as it is now: microseconds since 1970.
    package func wall(_ instant: ContinuousClock.Instant) -> Int64 {
        world.clock.wallNow + world.clock.now.duration(to: instant).microseconds
    }
}

extension RunCause {
    /// What the engine keeps of a cause.
    fileprivate init(_ cause: Cause) {
        self.init(
            cause.first.signal, count: cause.count, first: cause.first.instant, last: cause.last.instant,
            detail: cause.last.detail, number: cause.last.number)
    }
}
