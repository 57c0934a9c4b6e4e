package import FreshetSignals
internal import Synchronization

/// One pipeline at work: its refresh machine, and what performs what the machine says.
///
/// ``run()`` is a service: it returns when its task is cancelled, and then nothing of the pipeline goes on. At rest it
/// is one task that waits for signals and commands in one place, and a timer if a check is planned. Commands may come
/// from any thread, also before ``run()`` was called: they are done then.
package final class PipelineRunner: Sendable {
    package let name: String

    let world: PipelineWorld
    let mailbox: Mailbox
    let state: Lock<State>
    /// Bytes that the run under way has received.
    let progress = Progress()

    private let timer: any EngineTimer
    private let report: @Sendable (EngineEvent) -> Void
    private let subscription: Subscription
    private let seed: UInt64

    struct State {
        var definition: PipelineDefinition
        var settings: RefreshSettings
        /// What is remembered is asked for when `run()` begins; until then there is none.
        var machine: RefreshMachine?
        var network: NetworkState
        var generation: OfferedGeneration?
        /// Wall-clock microseconds since 1970.
        var lastCheck: Int64?
        var order: RunOrder?

        var slot: (number: UInt64, ticket: RunSlots.Ticket)?
        /// Set to end the run under way.
        var interruption: CurrentValue<Bool>?

        var lastRequest: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<RefreshAnswer, Never>] = [:]
        var isStopping = false
        var isClosed = false
        var stopWaiters: [CheckedContinuation<Void, Never>] = []

        /// What the store is still to be told, one after the other.
        var notes: [Note] = []
        var isWriting = false
    }

    /// Something for the store to remember.
    enum Note: Sendable {
        case run(RunRecord)
        case retryAfter(Int64?)
    }

    /// Makes a pipeline that listens from now on: what fires before ``run()`` is called is heard then.
    ///
    /// - Parameters:
    ///   - signal: all that the pipeline listens to, merged.
    ///   - network: the network's present state, for this pipeline's target.
    ///   - splay: this pipeline's share of the daemon's `splay`.
    ///   - host: a number that stays the same for this host.
    ///   - seed: where random delays begin.
    ///   - report: is told what happens, in order, from the task of ``run()``; it must not block.
    package init(
        _ definition: PipelineDefinition, signal: Signal, network: NetworkState, world: PipelineWorld,
        splay: Duration = .zero, host: UInt64, seed: UInt64 = .random(in: .min ... .max),
        report: @escaping @Sendable (EngineEvent) -> Void
    ) {
        name = definition.name
        self.world = world
        self.report = report
        self.seed = seed
        let mailbox = Mailbox(clock: world.clock)
        self.mailbox = mailbox
        timer = world.clock.makeTimer { mailbox.post(.timer) }
        subscription = Subscription(.merge(mailbox.signal, signal))
        let settings = RefreshSettings(definition, splay: splay, host: host)
        state = Lock(State(definition: definition, settings: settings, network: network))
    }

    /// Does the pipeline's work until the task is cancelled or ``stop()`` is called. When it returns, every run has ended, the slot has been
    /// given back, and everybody who waited was answered. To be called once.
    package func run() async {
        guard var causes = subscription.take() else { return }
        let remembered = await world.store.remembered(name)
        begin(remembered)
        await withDiscardingTaskGroup { group in
            perform([], in: &group)
            while !isStopping, let heard = await causes.next(isolation: #isolation) {
                var events = mailbox.take()
                let signals = heard.compactMap(RunCause.init)
                if !signals.isEmpty { events.append(.heard(signals)) }
                perform(events, in: &group)
            }
            perform(mailbox.take() + [.stopped], in: &group)
            group.cancelAll()
        }
        // The last run has returned by now, and says so.
        await withDiscardingTaskGroup { group in
            perform(mailbox.take(), in: &group)
        }
        close()
    }

    private func begin(_ remembered: RememberedState) {
        let now = world.clock.now
        let wallNow = world.clock.wallNow
        state.withLock { state in
            var memory = RefreshMemory(
                remembered, now: now, wallNow: wallNow, tolerance: state.settings.policy.freshFor)
            if let binding = remembered.binding, binding != state.definition.validatorBinding {
                memory.lastCheck = nil
            }
            state.generation = remembered.generation
            state.lastCheck = remembered.lastCheck
            state.machine = RefreshMachine(
                state.settings, network: state.network, memory: memory, jitter: Jitter(seed: seed), now: now)
        }
    }

    private func close() {
        timer.disarm()
        let (waiters, stopWaiters) = state.withLock { state in
            state.isClosed = true
            defer {
                state.waiters = [:]
                state.stopWaiters = []
            }
            return (state.waiters, state.stopWaiters)
        }
        for waiter in waiters.values { waiter.resume(returning: .stopped) }
        for waiter in stopWaiters { waiter.resume() }
    }

    private var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Gives events to the machine and does what it says, and what comes of that at once.
    private func perform(_ events: [RefreshMachine.Event], in group: inout DiscardingTaskGroup) {
        var events = events
        repeat {
            let now = world.clock.now
            let actions = state.withLock { $0.machine?.handle(events, now: now) ?? [] }
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
        case .start(let order):
            start(order, in: &group)
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
        case .report(let event):
            if case .runEnded(let summary, _) = event {
                state.withLock { $0.order = nil }
                note(.run(record(of: summary)), in: &group)
            }
            report(event)
        }
    }

    private func start(_ order: RunOrder, in group: inout DiscardingTaskGroup) {
        let interruption = CurrentValue(false)
        progress.bytes.store(0, ordering: .relaxed)
        let definition = state.withLock { state in
            state.interruption = interruption
            state.order = order
            return state.definition
        }
        let body = RunBody(definition: definition, world: world, epoch: order.epoch) { [progress] bytes in
            progress.bytes.store(bytes, ordering: .relaxed)
        }
        group.addTask { [self] in
            let result = await interruptible(by: interruption) { await self.result(of: body) }
            mailbox.post(.ended(run: order.run, result))
        }
    }

    private func result(of body: RunBody) async -> RunResult {
        do throws(FetchError) {
            let success = try await body.run()
            let wallNow = world.clock.wallNow
            let generation = state.withLock { state in
                if let generation = success.generation { state.generation = generation }
                state.lastCheck = wallNow
                return state.generation?.number
            }
            return .succeeded(changed: success.changed, generation: generation, at: world.clock.now)
        } catch {
            switch error {
            case .cancelled: return .cancelled
            case .failed(let failure): return .failed(failure)
            }
        }
    }

    // MARK: Slots

    /// Whether there is one at once.
    private func requestSlot(_ number: UInt64) -> Bool {
        let reply = world.slots.request { [mailbox] in mailbox.post(.slotGranted(number)) }
        switch reply {
        case .granted(let ticket):
            state.withLock { $0.slot = (number, ticket) }
            return true
        case .queued(let ticket):
            state.withLock { $0.slot = (number, ticket) }
            return false
        }
    }

    private func releaseSlot(_ number: UInt64) {
        let ticket = state.withLock { state -> RunSlots.Ticket? in
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
            }
        }
    }

    private func nextNote() -> Note? {
        state.withLock { state in
            if state.notes.isEmpty {
                state.isWriting = false
                return nil
            }
            return state.notes.removeFirst()
        }
    }

    private func record(of summary: RunSummary) -> RunRecord {
        RunRecord(
            pipeline: name, run: summary.run, causes: summary.causes.summary, started: wall(summary.started),
            ended: wall(summary.ended), outcome: summary.outcome.rawValue, error: summary.failure?.message,
            generation: summary.generation)
    }

    /// An instant by the wall clock as it is now: microseconds since 1970.
    package func wall(_ instant: ContinuousClock.Instant) -> Int64 {
        let (seconds, attoseconds) = world.clock.now.duration(to: instant).components
        return world.clock.wallNow + seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}

/// A counter that the emitter's thread sets and anybody reads.
final class Progress: Sendable {
    let bytes = Atomic<UInt64>(0)
}

/// Runs a body until it returns; when the value becomes true it is cancelled, and awaited all the same.
private func interruptible(
    by interruption: CurrentValue<Bool>, _ body: @escaping @Sendable () async -> RunResult
) async -> RunResult {
    await withTaskGroup(of: RunResult?.self) { group in
        group.addTask { await body() }
        group.addTask {
            for await isInterrupted in interruption where isInterrupted { break }
            return nil
        }
        var result = RunResult.cancelled
        for await ended in group {
            group.cancelAll()
            if let ended { result = ended }
        }
        return result
    }
}

extension RunCause {
    /// What the engine keeps of a cause; nil for the mailbox's own signal.
    fileprivate init?(_ cause: Cause) {
        guard cause.first.signal != Mailbox.signalName else { return nil }
        self.init(
            cause.first.signal, count: cause.count, first: cause.first.instant, last: cause.last.instant,
            detail: cause.last.detail)
    }
}
