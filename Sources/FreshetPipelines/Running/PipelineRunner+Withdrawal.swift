import FreshetModel
internal import FreshetSignals

/// Withdraws copies from readers, and publishes them again.
extension PipelineRunner {
    /// Withdraws the copy, or publishes it again.
    func settleCopy(withdraws: Bool, in group: inout DiscardingTaskGroup) {
        group.addTask { [self] in
            let before = state.withLock { $0.copy.generation }
            let settlement: CopyChangeResult
            switch await withdraws
                ? world.store.withdraw(name, unless: { [self] in isConcluding })
                : world.store.putBack(definition)
            {
            case .done(let generation):
                state.withLock { $0.copy.record(generation) }
                settlement = .done
            case .damaged(let generation):
                lost(generation)
                settlement = .left
            case .nothing:
                // The kept copy is damaged and has to be fetched again, unless the run in progress is about to commit.
                if !isConcluding { losesCopy(before) }
                settlement = .left
            case .left: settlement = .left
            case .failed: settlement = .failed
            }
            mailbox.post(.copySettled(settlement))
        }
    }

    /// Publishes the copy again if readers do not find it, or records its loss: after a run without a new copy, and
    /// after another program has removed the published file.
    ///
    /// - Returns: what readers find now.
    @discardableResult
    package func restoreCopy() async -> RestoredCopy {
        guard let before = state.withLock({ $0.copy.generation }), before.withdrawnSince == nil else { return .whole }
        switch await world.store.restoreCopy(of: name) {
        case .done(let generation):
            state.withLock { $0.copy.record(generation) }
            return .whole
        case .nothing, .damaged: return losesCopy(before) ? .lost : .whole
        case .left: return .whole
        case .failed: return .failed
        }
    }

    /// There is no copy any more, unless a run or the operator has published another one meanwhile.
    ///
    /// - Returns: whether the copy is lost.
    @discardableResult
    private func losesCopy(_ before: CurrentGeneration?) -> Bool {
        let isLost = state.withLock { state in
            guard state.copy.generation == before else { return false }
            state.copy.lose()
            return true
        }
        if isLost { mailbox.post(.lost) }
        return isLost
    }

    /// The withdrawn copy was damaged. Unless there is a newer one by now, there is no copy until the next run.
    private func lost(_ generation: CurrentGeneration) {
        let (isCopy, checked) = state.withLock { state in
            let isCopy = state.copy.generation.map { $0.revision < generation.revision } ?? true
            if isCopy { state.copy.loseWithdrawn() }
            return (isCopy, state.machine.schedule.confirmed)
        }
        guard isCopy else { return }
        report(.withdrawnDamaged(generation, checked: checked))
        mailbox.post(.timer)
    }

    /// Whether the run in progress is about to confirm or replace the copy.
    private var isConcluding: Bool {
        state.withLock { !$0.machine.phase.isBetweenChecks && $0.runs.progress.concludes }
    }
}

/// What readers find after ``PipelineRunner/restoreCopy()``.
package enum RestoredCopy: Hashable, Sendable {
    /// The copy, or none because the pipeline has none.
    case whole
    /// No file, because no intact content is kept.
    case lost
    /// Perhaps no file, because it could not be published.
    case failed
}
