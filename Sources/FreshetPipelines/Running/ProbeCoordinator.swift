internal import FreshetSignals

/// Obtains proofs of the network for pipelines: it runs one ``ProbeMachine`` for each probe and performs the machine's
/// actions.
///
/// Requests come from any thread; the engine's task performs the steps. While no pipeline needs a proof, there is no
/// task and no armed timer.
final class ProbeCoordinator: Sendable {
    /// Identifies a subscriber, which has at most one request: a key of the engine's inbox.
    typealias Subscriber = CauseInbox.Key
    /// Receives results, from the engine's task; it must not block.
    typealias Handler = @Sendable (ProofResult) -> Void

    enum Event: Sendable {
        case subscribe(ProofRequest, Subscriber, Handler)
        case unsubscribe(Subscriber)
        case ended(NetworkProbe, attempt: UInt64, ProbeMachine.Outcome)
        case timer(NetworkProbe)
    }

    private struct Entry {
        var machine: ProbeMachine
        let timer: any EngineTimer
        /// Set to true to end the attempt in progress.
        var interruption: OneTimeEvent?
    }

    private struct State {
        var subscriptions: [Subscriber: (probe: NetworkProbe, handler: Handler)] = [:]
        var entries: [NetworkProbe: Entry] = [:]
        /// Callers that wait for the first result.
        var callers: [Subscriber: CheckedContinuation<String?, Never>] = [:]
        var isClosed = false
    }

    private let world: EngineDependencies
    private let mailbox: Mailbox<Event>
    private let notify: @Sendable (ProbeEvent) -> Void
    private let state = Lock(State())

    init(_ world: EngineDependencies, _ mailbox: Mailbox<Event>, notify: @escaping @Sendable (ProbeEvent) -> Void) {
        self.world = world
        self.mailbox = mailbox
        self.notify = notify
    }

    /// Requests a proof; it replaces the subscriber's previous request. The handler receives every result until the
    /// proof.
    func subscribe(_ request: ProofRequest, _ subscriber: Subscriber, _ handler: @escaping Handler) {
        mailbox.post(.subscribe(request, subscriber, handler))
    }

    /// Withdraws the subscriber's request.
    func unsubscribe(_ subscriber: Subscriber) {
        mailbox.post(.unsubscribe(subscriber))
    }

    /// Requests a proof and awaits the first result: nil if there is a proof, otherwise a sentence that says why not.
    func refusal(of request: ProofRequest, _ subscriber: Subscriber) async -> String? {
        await withCheckedContinuation { caller in
            let isClosed = state.withLock { state in
                if !state.isClosed { state.callers[subscriber] = caller }
                return state.isClosed
            }
            guard !isClosed else { return caller.resume(returning: Self.closedMessage) }
            subscribe(request, subscriber) { [weak self] in self?.answer(subscriber, $0) }
        }
    }

    private static let closedMessage = "the daemon is stopping"

    private func answer(_ subscriber: Subscriber, _ result: ProofResult) {
        guard let caller = state.withLock({ $0.callers.removeValue(forKey: subscriber) }) else { return }
        switch result {
        case .proven: caller.resume(returning: nil)
        case .refused(let sentence):
            unsubscribe(subscriber)
            caller.resume(returning: sentence)
        }
    }

    /// Takes all events and performs the resulting actions.
    func step(in group: inout DiscardingTaskGroup) {
        for event in mailbox.take() {
            switch event {
            case .subscribe(let request, let subscriber, let handler):
                let before = state.withLock {
                    $0.subscriptions.updateValue((request.probe, handler), forKey: subscriber)?.probe
                }
                if let before, before != request.probe { handle(.released(subscriber), of: before, in: &group) }
                handle(
                    .requested(by: subscriber, epoch: request.epoch, since: request.since), of: request.probe,
                    in: &group)
            case .unsubscribe(let subscriber):
                guard let probe = state.withLock({ $0.subscriptions.removeValue(forKey: subscriber)?.probe }) else {
                    continue
                }
                handle(.released(subscriber), of: probe, in: &group)
            case .ended(let probe, let attempt, let outcome):
                handle(.ended(attempt: attempt, outcome), of: probe, in: &group)
            case .timer(let probe):
                handle(.timer, of: probe, in: &group)
            }
        }
    }

    /// The service has ended, and no attempt is in progress: answers all remaining callers.
    func close() {
        mailbox.close()
        let (callers, entries) = state.withLock { state in
            defer { state = State(isClosed: true) }
            return (state.callers.values, state.entries.values)
        }
        for entry in entries { entry.timer.disarm() }
        for caller in callers { caller.resume(returning: Self.closedMessage) }
    }

    private func handle(_ event: ProbeMachine.Event, of probe: NetworkProbe, in group: inout DiscardingTaskGroup) {
        let now = world.clock.now
        let actions = state.withLock { state in
            var entry =
                state.entries[probe]
                ?? Entry(
                    machine: ProbeMachine(probe),
                    timer: world.clock.makeTimer { [mailbox] in mailbox.post(.timer(probe)) })
            defer { state.entries[probe] = entry.machine.isIdle(at: now) ? nil : entry }
            return entry.machine.handle(event, now: now)
        }
        for action in actions { perform(action, of: probe, in: &group) }
    }

    private func perform(_ action: ProbeMachine.Action, of probe: NetworkProbe, in group: inout DiscardingTaskGroup) {
        switch action {
        case .start(let attempt, let epoch):
            let interruption = OneTimeEvent()
            state.withLock { $0.entries[probe]?.interruption = interruption }
            group.addTask { [self] in
                let outcome = await interruptible(by: interruption, otherwise: .cancelled) {
                    await self.outcome(of: probe, epoch: epoch)
                }
                mailbox.post(.ended(probe, attempt: attempt, outcome))
            }
        case .cancel:
            state.withLock { $0.entries[probe]?.interruption }?.happen()
        case .notify(let subscribers, let result):
            var isProven = false
            if case .proven = result { isProven = true }
            let handlers = state.withLock { state in
                subscribers.compactMap { subscriber in
                    isProven
                        ? state.subscriptions.removeValue(forKey: subscriber)?.handler
                        : state.subscriptions[subscriber]?.handler
                }
            }
            for handler in handlers { handler(result) }
        case .wake(at: let instant?):
            state.withLock { $0.entries[probe]?.timer }?.arm(at: instant)
        case .wake(at: nil):
            state.withLock { $0.entries[probe]?.timer }?.disarm()
        case .report(let event):
            notify(event)
        }
    }

    private func outcome(of probe: NetworkProbe, epoch: UInt64) async -> ProbeMachine.Outcome {
        guard let prober = world.prober else { return .failed(RunFailure(.local, "probes are not available")) }
        do throws(FetchError) {
            try await prober.probe(probe, epoch: epoch)
            return .proven
        } catch {
            switch error {
            case .cancelled: return .cancelled
            case .failed(var failure):
                failure.message = world.redact(failure.message)
                return .failed(failure)
            }
        }
    }
}
