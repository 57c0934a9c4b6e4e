internal import FreshetSignals

/// Where pipelines ask for proofs of the network: one machine for each probe, and what performs what the machines say.
///
/// Wishes come from any thread; the engine's task takes the steps. While nobody wants a proof there is no task and no
/// timer that is armed.
final class ProbeCoordinator: Sendable {
    /// Somebody who may want a proof, one at a time: a key of the engine's inbox.
    typealias Seat = CauseInbox.Key
    /// Is told of a verdict, from the engine's task; it must not block.
    typealias Listener = @Sendable (ProofResult) -> Void

    enum Event: Sendable {
        case wants(ProofRequest, Seat, Listener)
        case wantsNothing(Seat)
        case ended(NetworkProbe, attempt: UInt64, ProbeMachine.Outcome)
        case timer(NetworkProbe)
    }

    private struct Place {
        var machine: ProbeMachine
        let timer: any EngineTimer
        /// Set to end the attempt under way.
        var interruption: CurrentValue<Bool>?
    }

    private struct State {
        var wants: [Seat: (probe: NetworkProbe, listener: Listener)] = [:]
        var places: [NetworkProbe: Place] = [:]
        /// Who waits for one verdict.
        var askers: [Seat: CheckedContinuation<String?, Never>] = [:]
        var isClosed = false
    }

    private let world: EngineDependencies
    private let mailbox: Mailbox<Event>
    private let tell: @Sendable (ProbeEvent) -> Void
    private let state = Lock(State())

    init(_ world: EngineDependencies, _ mailbox: Mailbox<Event>, tell: @escaping @Sendable (ProbeEvent) -> Void) {
        self.world = world
        self.mailbox = mailbox
        self.tell = tell
    }

    /// Wants a proof instead of the one before. The listener is told each verdict, until it is the proof.
    func want(_ wish: ProofRequest, _ seat: Seat, _ listener: @escaping Listener) {
        mailbox.post(.wants(wish, seat, listener))
    }

    /// Wants no proof any more.
    func wantNothing(_ seat: Seat) {
        mailbox.post(.wantsNothing(seat))
    }

    /// The first verdict: nil if there is a proof, else a sentence that says why not.
    func refusal(of wish: ProofRequest, _ seat: Seat) async -> String? {
        await withCheckedContinuation { asker in
            let isClosed = state.withLock { state in
                if !state.isClosed { state.askers[seat] = asker }
                return state.isClosed
            }
            guard !isClosed else { return asker.resume(returning: Self.isOver) }
            want(wish, seat) { [weak self] in self?.answer(seat, $0) }
        }
    }

    private static let isOver = "nobody asks any more"

    private func answer(_ seat: Seat, _ verdict: ProofResult) {
        guard let asker = state.withLock({ $0.askers.removeValue(forKey: seat) }) else { return }
        switch verdict {
        case .proven: asker.resume(returning: nil)
        case .refused(let sentence):
            wantNothing(seat)
            asker.resume(returning: sentence)
        }
    }

    /// Takes what has come and does what follows from it.
    func step(in group: inout DiscardingTaskGroup) {
        for event in mailbox.take() {
            switch event {
            case .wants(let wish, let seat, let listener):
                let before = state.withLock { $0.wants.updateValue((wish.probe, listener), forKey: seat)?.probe }
                if let before, before != wish.probe { handle(.released(seat), of: before, in: &group) }
                handle(.wanted(by: seat, epoch: wish.epoch, since: wish.since), of: wish.probe, in: &group)
            case .wantsNothing(let seat):
                guard let probe = state.withLock({ $0.wants.removeValue(forKey: seat)?.probe }) else { continue }
                handle(.released(seat), of: probe, in: &group)
            case .ended(let probe, let attempt, let outcome):
                handle(.ended(attempt: attempt, outcome), of: probe, in: &group)
            case .timer(let probe):
                handle(.timer, of: probe, in: &group)
            }
        }
    }

    /// The service is over, and no attempt goes on: answers all who wait still.
    func close() {
        mailbox.close()
        let (askers, places) = state.withLock { state in
            defer { state = State(isClosed: true) }
            return (state.askers.values, state.places.values)
        }
        for place in places { place.timer.disarm() }
        for asker in askers { asker.resume(returning: Self.isOver) }
    }

    private func handle(_ event: ProbeMachine.Event, of probe: NetworkProbe, in group: inout DiscardingTaskGroup) {
        let now = world.clock.now
        let actions = state.withLock { state in
            var place =
                state.places[probe]
                ?? Place(
                    machine: ProbeMachine(probe),
                    timer: world.clock.makeTimer { [mailbox] in mailbox.post(.timer(probe)) })
            defer { state.places[probe] = place.machine.isSpent(at: now) ? nil : place }
            return place.machine.handle(event, now: now)
        }
        for action in actions { perform(action, of: probe, in: &group) }
    }

    private func perform(_ action: ProbeMachine.Action, of probe: NetworkProbe, in group: inout DiscardingTaskGroup) {
        switch action {
        case .ask(let attempt, let epoch):
            let interruption = CurrentValue(false)
            state.withLock { $0.places[probe]?.interruption = interruption }
            group.addTask { [self] in
                let outcome = await interruptible(by: interruption, otherwise: .cancelled) {
                    await self.outcome(of: probe, epoch: epoch)
                }
                mailbox.post(.ended(probe, attempt: attempt, outcome))
            }
        case .cancel:
            state.withLock { $0.places[probe]?.interruption }?.value = true
        case .tell(let seats, let verdict):
            var isProven = false
            if case .proven = verdict { isProven = true }
            let listeners = state.withLock { state in
                seats.compactMap { seat in
                    isProven ? state.wants.removeValue(forKey: seat)?.listener : state.wants[seat]?.listener
                }
            }
            for listener in listeners { listener(verdict) }
        case .wake(at: let instant?):
            state.withLock { $0.places[probe]?.timer }?.arm(at: instant)
        case .wake(at: nil):
            state.withLock { $0.places[probe]?.timer }?.disarm()
        case .report(let news):
            tell(news)
        }
    }

    private func outcome(of probe: NetworkProbe, epoch: UInt64) async -> ProbeMachine.Outcome {
        guard let prober = world.prober else { return .failed(RunFailure(.local, "nobody can ask it")) }
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
