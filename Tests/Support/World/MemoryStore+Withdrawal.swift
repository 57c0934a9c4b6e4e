import FreshetModel
package import FreshetPipelines
internal import FreshetSignals

/// Copies that are withdrawn from readers, since they are too old.
extension MemoryStore {
    package enum Withdrawal: Hashable, Sendable {
        case withdrawn, putBack, moot, failed
    }

    package func withdraw(
        _ pipeline: String, unless isMoot: @escaping @Sendable () -> Bool
    ) async -> WithdrawalResult {
        let isMoot = isMoot()
        let wallNow = wallNow
        return state.withLock { state in
            guard var generation = state.remembered.generation, generation.pinnedSince == nil, !isMoot else {
                state.withdrawals.append(.moot)
                return state.remembered.generation == nil ? .nothing : .left
            }
            guard !state.isReadOnly else {
                state.withdrawals.append(.failed)
                return .failed
            }
            state.withdrawals.append(.withdrawn)
            generation.withdrawnSince = generation.withdrawnSince ?? wallNow
            generation.revision += 1
            guard !state.isDamaged else {
                (state.remembered.generation, state.bytes) = (nil, nil)
                return .damaged(generation)
            }
            state.remembered.generation = generation
            return .done(generation)
        }
    }

    package func restoreCopy(of pipeline: String) async -> WithdrawalResult {
        state.withLock { $0.restorations += 1 }
        return .left
    }

    package func putBack(_ definition: PipelineDefinition) async -> WithdrawalResult {
        state.withLock { state in
            guard var generation = state.remembered.generation, state.bytes != nil else { return .nothing }
            guard generation.withdrawnSince != nil else { return .done(generation) }
            guard !state.isReadOnly else {
                state.withdrawals.append(.failed)
                return .failed
            }
            state.withdrawals.append(.putBack)
            generation.withdrawnSince = nil
            generation.revision += 1
            state.remembered.generation = generation
            return .done(generation)
        }
    }
}
