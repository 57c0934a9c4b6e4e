internal import FreshetSignals

/// Copies that are withdrawn from readers, and come back.
extension PipelineRunner {
    /// What the machine was told of the copy.
    struct ReportedCopy: Hashable, Sendable {
        var number: UInt64?
        var isWithdrawn: Bool
        var isPinned: Bool
        var writtenAt: Int64?

        init(_ generation: CurrentGeneration?) {
            number = generation?.number
            isWithdrawn = generation?.withdrawnSince != nil
            isPinned = generation?.pinnedSince != nil
            writtenAt = generation?.writtenAt
        }
    }

    /// What the machine has to know of the copy and does not know yet.
    func copyNews(_ state: inout State, _ now: ContinuousClock.Instant) -> [RefreshMachine.Event] {
        guard
            state.definition.cache.withdraws || state.toldCopy != nil || state.generation?.withdrawnSince != nil
        else { return [] }
        var news: [RefreshMachine.Event] = []
        if state.isCopyLost {
            (state.isCopyLost, state.toldCopy) = (false, ReportedCopy(nil))
            news.append(.copyLost)
        }
        let copy = ReportedCopy(state.generation)
        guard copy != state.toldCopy else { return news }
        state.toldCopy = copy
        return news + [.copy(state.generation.map { CopyState($0, now: now, wallNow: world.clock.wallNow) })]
    }

    /// Has readers find the copy no more, or again.
    func settleCopy(withdraws: Bool, in group: inout DiscardingTaskGroup) {
        group.addTask { [self] in
            let settlement: CopyChangeResult
            switch await withdraws
                ? world.store.withdraw(name, unless: { [self] in isConcluding })
                : world.store.putBack(definition)
            {
            case .done(let generation):
                state.withLock { $0.offer(generation) }
                settlement = .done
            case .damaged(let generation):
                lost(generation)
                settlement = .left
            case .nothing:
                // What is kept is not whole, and is fetched again; unless that is what just happens.
                if !isConcluding { offersNothing() }
                settlement = .left
            case .left: settlement = .left
            case .failed: settlement = .failed
            }
            mailbox.post(.copySettled(settlement))
        }
    }

    /// What was withdrawn was not whole; unless there is a newer copy by now, there is none until the next run.
    private func lost(_ generation: CurrentGeneration) {
        let (isCopy, checked) = state.withLock { state in
            let isCopy = state.generation.map { $0.turn < generation.turn } ?? true
            if isCopy { (state.generation, state.isCopyLost) = (nil, true) }
            return (isCopy, state.machine.confirmed)
        }
        guard isCopy else { return }
        report(.withdrawnDamaged(generation, checked: checked))
        mailbox.post(.timer)
    }

    /// The run under way is about to make the copy young.
    private var isConcluding: Bool {
        state.withLock { $0.machine.run?.isLoadMore == false && $0.progress.concludes }
    }
}
