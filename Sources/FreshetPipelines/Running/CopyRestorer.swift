internal import FreshetModel
internal import FreshetSignals

/// Keeps what readers find in agreement with what the runner of a pipeline knows: withdraws the copy, publishes it
/// again, and records its loss. From any thread.
package struct CopyRestorer: Sendable {
    private let runner: PipelineRunner

    init(_ runner: PipelineRunner) { self.runner = runner }

    private var store: any SnapshotStore { runner.world.store }

    /// Withdraws the copy, or publishes it again, and reports to the machine what became of it.
    func settle(withdraws: Bool) async {
        let before = runner.state.withLock { $0.copy.generation }
        let settlement: CopyChangeResult
        switch await withdraws
            ? store.withdraw(runner.name, unless: { isConcluding })
            : store.putBack(runner.definition)
        {
        case .done(let generation):
            runner.state.withLock { $0.copy.record(generation) }
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
        runner.mailbox.post(.copySettled(settlement))
    }

    /// Publishes the copy again if readers do not find it, or records its loss: after a run without a new copy, and
    /// after another program has removed the published file. The store leaves a withdrawn copy as it is.
    ///
    /// The store is asked also if the runner knows of no copy: a run may have committed one that it has not recorded yet.
    ///
    /// - Parameter readsCopy: reads the copy from the store if the runner knows of none: at the start, it may not have
    ///   been possible to compare it with the index.
    /// - Returns: what readers find now.
    @discardableResult
    package func restore(readsCopy: Bool = false) async -> RestoredCopy {
        let before = runner.state.withLock { $0.copy.generation }
        switch await store.restoreCopy(of: runner.name) {
        case .done(let generation):
            runner.state.withLock { $0.copy.record(generation) }
            if readsCopy, before == nil { await recall() }
            return .whole
        case .nothing, .damaged: return before != nil && losesCopy(before) ? .lost : .whole
        case .left:
            if readsCopy, before == nil { await recall() }
            return .whole
        case .failed: return .failed
        }
    }

    /// Reads the copy and its last check, which could not be read at the start.
    private func recall() async {
        let found = await store.remembered(runner.name)
        guard let generation = found.generation else {
            return runner.state.withLock { state in
                if state.copy.generation == nil { state.copy.isUnknown(because: found.copyError) }
            }
        }
        runner.publishes(generation)
        let isRecalled = runner.state.withLock { state in
            // Nil: a check has succeeded since.
            guard let known = state.remembered, known.lastCheck == nil, let checked = found.lastCheck else {
                return false
            }
            var times = StoredTimes(found)
            times.isOfOtherConfiguration =
                known.isOfOtherConfiguration
                || found.binding.map {
                    !state.configuration.definition.makes($0, with: state.configuration.values)
                } ?? false
            state.remembered = times
            state.copy.lastCheck = checked
            return true
        }
        // The stored times are converted as after a step of the clock.
        if isRecalled { runner.clockStepped() }
    }

    /// A repair of the cache found no intact generation, so there is no copy any more, unless a newer one was committed.
    ///
    /// - Parameter revision: the revision of the copy's state after the repair.
    /// - Returns: whether the copy was lost.
    @discardableResult
    package func losesCopy(revision: UInt64) -> Bool {
        losesCopy { $0?.revision ?? 0 <= revision }
    }

    /// There is no copy any more, unless a run or the operator has published another one meanwhile.
    ///
    /// - Returns: whether the copy is lost.
    @discardableResult
    private func losesCopy(_ before: CurrentGeneration?) -> Bool {
        losesCopy { $0 == before }
    }

    private func losesCopy(if isStill: (CurrentGeneration?) -> Bool) -> Bool {
        let isLost = runner.state.withLock { state in
            guard isStill(state.copy.generation) else { return false }
            state.copy.lose()
            return true
        }
        if isLost { runner.mailbox.post(.lost) }
        return isLost
    }

    /// The withdrawn copy was damaged. Unless there is a newer one by now, there is no copy until the next run.
    private func lost(_ generation: CurrentGeneration) {
        let (isCopy, checked) = runner.state.withLock { state in
            let isCopy = state.copy.generation.map { $0.revision < generation.revision } ?? true
            if isCopy { state.copy.loseWithdrawn() }
            return (isCopy, state.machine.schedule.confirmed)
        }
        guard isCopy else { return }
        runner.report(.withdrawnDamaged(generation, checked: checked))
        runner.mailbox.post(.timer)
    }

    /// Whether the run in progress is about to confirm or replace the copy.
    private var isConcluding: Bool {
        runner.state.withLock { !$0.machine.phase.isBetweenChecks && $0.runs.progress?.concludes == true }
    }
}

extension PipelineRunner {
    package var restorer: CopyRestorer { CopyRestorer(self) }
}

/// What readers find after ``CopyRestorer/restore()``.
package enum RestoredCopy: Hashable, Sendable {
    /// The copy, or none because the pipeline has none.
    case whole
    /// No file, because no intact content is kept.
    case lost
    /// Perhaps no file, because it could not be published.
    case failed
}
