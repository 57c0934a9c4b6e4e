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
    private let send: @Sendable (PipelineReport) -> Void
    private let probes: ProbeCoordinator
    private let seed: UInt64

    struct State {
        var machine: RefreshMachine
        var configuration: ActiveConfiguration
        var subscription: CauseSubscription
        /// The network of the pipeline's target.
        var network: NetworkFeed
        var copy: CopyRecord
        var runs: RunHistory
        /// Since when the operator holds the pipeline.
        var heldSince: WallTime?
        /// The stored state with its wall-clock times, which are converted again when the wall clock is stepped; nil
        /// once a check has succeeded.
        @Boxed var remembered: StoredTimes?
        var waiters = AnswerWaiters()
        var permit = NextPermit()
        var records = RecordQueue()
        /// Nil: it is not armed. Most pipelines have no planned check, and need no timer between their runs.
        var timer: (any EngineTimer)?

        /// Forgets what the machine does not need any more.
        mutating func forgetRemembered() {
            if remembered != nil, machine.schedule.memory == nil { remembered = nil }
        }
    }

    init(
        _ definition: PipelineDefinition, _ settings: RefreshSettings, remembered: PersistentState,
        network: NetworkFeed, _ networkState: NetworkState, world: EngineDependencies, subscription: CauseSubscription,
        mailbox: Mailbox<RefreshMachine.Event>, probes: ProbeCoordinator,
        seed: UInt64, report: @escaping @Sendable (PipelineReport) -> Void
    ) {
        name = definition.name
        self.world = world
        send = report
        self.mailbox = mailbox
        self.probes = probes
        self.seed = seed
        let now = world.clock.now
        var known = StoredTimes(remembered)
        let configuration = ActiveConfiguration(definition, remembered: remembered.parameters)
        let values = configuration.values
        if let binding = remembered.binding, !definition.makes(binding, with: values) {
            known.isOfOtherConfiguration = true
        }
        let memory = StoredRefreshState(
            known, now: now, wallNow: world.clock.wallNow, tolerance: settings.policy.freshFor)
        let lastRun = remembered.lastRunRecord.map {
            RunSummary(remembered: $0, now: now, wallNow: world.clock.wallNow)
        }
        let machine = RefreshMachine(
            settings, network: networkState, memory: memory, lastRun: lastRun, parameters: values,
            jitter: Jitter(seed: seed), now: now)
        state = Lock(
            State(
                machine: machine, configuration: configuration, subscription: subscription, network: network,
                copy: CopyRecord(remembered, isKnown: machine.copy.withdrawal != nil),
                runs: RunHistory(
                    pages: remembered.generation == nil
                        ? [] : PartCache.pages(remembered.pages, of: definition, with: values),
                    lastMirror: lastRun?.mirror),
                heldSince: remembered.heldSince, remembered: machine.schedule.memory.map { _ in known }))
    }

    /// Takes all events and performs the resulting actions.
    func step(in group: inout DiscardingTaskGroup) {
        let dropped = state.withLock { $0.configuration.takeDropped() }
        if !dropped.isEmpty {
            report(.parametersDropped(dropped))
            enqueue(.parameters, in: &group)
        }
        var events = mailbox.take()
        let received = state.withLock { $0.subscription }.take()
        if !received.isEmpty { events.append(.received(received.map(RunCause.init))) }
        // A signal and another event have woken the pipeline, and the step before has taken both.
        guard !events.isEmpty else { return }
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
            if schedule.memory == nil, let success = schedule.lastSuccess { state.copy.lastCheck = wall(success) }
            // Content that was rejected because of its time may pass now.
            state.copy.forgetRejection()
            return state.remembered.map {
                StoredRefreshState(
                    $0, now: now, wallNow: wallNow, tolerance: state.machine.settings.policy.freshFor)
            }
        }
        mailbox.post(.clockStepped(memory, calendar: calendar))
    }

    /// The local time zone has changed: plans calendar times again.
    func zoneChanged() {
        if let calendar { mailbox.post(.zoneChanged(calendar)) }
    }

    /// The calendar times by the clock as it is now.
    private var calendar: Shared<CalendarPlan>? {
        CalendarPlan(definition.refresh.calendar, world.clock).map(Shared.init(wrappedValue:))
    }

    /// Begins the stop: after that, only the end of a run is awaited.
    func beginStop(in group: inout DiscardingTaskGroup) {
        perform(mailbox.take() + [.stopped], in: &group)
    }

    /// Whether the runner has stopped completely.
    var isOver: Bool {
        state.withLock { $0.machine.phase == .stopped(nil) && !$0.records.isWriting }
    }

    /// Stops the runner and awaits its end.
    func stop() async {
        mailbox.post(.stopped)
        await closed()
    }

    /// The runner has stopped: answers all remaining requests.
    func close() {
        arm(at: nil)
        state.withLock { $0.network }.leave(mailbox)
        mailbox.close()
        closeWaiters()
    }

    /// Passes events to the machine and performs its actions, and those of the events that follow immediately.
    private func perform(_ events: [RefreshMachine.Event], in group: inout DiscardingTaskGroup) {
        var events = events
        repeat {
            let now = world.clock.now
            let actions = state.withLock { state in
                let copyChanges = state.copy.events(
                    withdraws: state.configuration.definition.cache.withdraws,
                    findsExpiry: state.configuration.definition.check.findsExpiry, now: now,
                    wallNow: { world.clock.wallNow })
                return state.machine.handle(copyChanges.isEmpty ? events : copyChanges + events, now: now)
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
            let isGranted = requestPermit(number)
            // Without a permit, the machine gets one more event, so that it can report the wait.
            events.append(isGranted ? .permitGranted(number) : .timer)
        case .releasePermit(let number):
            releasePermit(number)
        case .prove(let request?):
            probes.subscribe(request, mailbox.key) { [mailbox] in mailbox.post(.proof($0)) }
        case .prove(nil):
            probes.unsubscribe(mailbox.key)
        case .start(let order):
            start(order, in: &group)
        case .withdraw, .putBack:
            group.addTask { [restorer] in await restorer.settle(withdraws: action == .withdraw) }
        case .cancel:
            state.withLock { $0.runs.interruption }?.happen()
        case .wake(at: let instant):
            arm(at: instant)
        case .answer(let request, let answer):
            resume(request, with: answer)
        case .rememberRetryAfter(let instant):
            enqueue(.retryAfter(instant.map(wall)), in: &group)
        case .rememberRequests(let spent):
            let requests = spent.map {
                RequestBurst(
                    first: wall($0.first), last: wall($0.last),
                    count: $0.count)
            }
            enqueue(.requests(requests), in: &group)
        case .report(.runEnded(var summary, let next)):
            let report = state.withLock { state in
                summary.mirror = state.runs.progress?.mirror
                // The machine does not know mirrors.
                state.machine.runs.record(mirror: summary.mirror, of: summary.run)
                var report = PipelineReport(.runEnded(summary, next: next), sharing: state.copy.shared)
                report.usage = state.runs.usage
                report.committed = state.runs.ended(summary, report.copy)
                state.forgetRemembered()
                return report
            }
            enqueue(.run(record(of: summary)), in: &group)
            send(report)
        case .report(let event):
            report(detailed(event))
        }
    }

    /// Reports an event with the current copy.
    func report(_ event: EngineEvent) {
        send(PipelineReport(event, sharing: state.withLock { $0.copy.shared }))
    }

    private func start(_ order: RunOrder, in group: inout DiscardingTaskGroup) {
        let permit = state.withLock { $0.permit.take() }
        let run = PipelineRun(order, of: self, beginningWith: permit, seed: seed &+ order.run)
        group.addTask { await run.execute() }
    }

    /// Arms the timer; nil: releases it, so it does not fire.
    private func arm(at instant: BootInstant?) {
        let known = state.withLock { state in
            defer { if instant == nil { state.timer = nil } }
            return state.timer
        }
        guard let instant else { return }
        let timer = known ?? world.clock.makeTimer { [mailbox] in mailbox.post(.timer) }
        timer.arm(at: instant)
        if known == nil { state.withLock { $0.timer = timer } }
    }

    // MARK: Records for the store

    /// Appends a record to the queue for the store; the pipeline does not wait for the disk.
    private func enqueue(_ record: RecordQueue.Record, in group: inout DiscardingTaskGroup) {
        // The usual record of a run needs no task.
        if case .run(let run) = record, state.withLock({ $0.records.isEmpty }), world.store.recordNow(run) { return }
        guard state.withLock({ $0.records.append(record) }) else { return }
        group.addTask { [self] in
            while let record = state.withLock({ $0.records.next() }) { await write(record) }
            // A caller that waits for the end may wait for this write.
            if state.withLock({ $0.machine.phase.isStopped }) { mailbox.post(.timer) }
        }
    }

    private func write(_ record: RecordQueue.Record) async {
        switch record {
        case .run(let record): await world.store.record(record)
        case .retryAfter(let until): await world.store.rememberRetryAfter(name, until: until)
        case .requests(let requests): await world.store.rememberRequests(name, requests)
        case .parameters: await rememberParameters()
        }
    }

    private func record(of summary: RunSummary) -> RunRecord {
        let started = wall(summary.started)
        // Computed from the start, since a second reading of the clocks would give another duration.
        let ended = started.advanced(by: summary.duration)
        return RunRecord(
            pipeline: name, number: summary.run, causes: summary.causes.summary,
            causeTimes: summary.causes.map { cause in
                CauseTimes(
                    first: started.advanced(by: summary.started.duration(to: cause.first)),
                    last: started.advanced(by: summary.started.duration(to: cause.last)))
            }, started: started, ended: ended, outcome: summary.outcome, error: summary.failure?.message,
            generation: summary.generation, mirror: summary.mirror)
    }

    /// An instant by the current wall clock.
    package func wall(_ instant: BootInstant) -> WallTime {
        world.clock.wallNow.advanced(by: world.clock.now.duration(to: instant))
    }
}
