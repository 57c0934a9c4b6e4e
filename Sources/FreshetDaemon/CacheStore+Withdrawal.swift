import FreshetCache
import FreshetEventLoop
import FreshetModel
import FreshetPipelines

/// Withdrawal of copies that are too old for readers. Many copies may expire at the same time, so withdrawals share the
/// threads of commits and wait for the disk together.
extension CacheStore {
    func withdraw(_ pipeline: String, unless isMoot: @escaping @Sendable () -> Bool) async -> WithdrawalResult {
        await committers.run("withdrawal") { [self] in
            attempt(pipeline, else: .failed) { () throws(CacheError) -> WithdrawalResult in
                switch try cache.withdrawals.withdraw(pipeline, at: .now, unless: isMoot) {
                case .withdrawn(let generation): .done(generation)
                case .damaged(let generation): .damaged(generation)
                case .left: try cache.withdrawals.keepsCopy(pipeline) ? .left : .nothing
                }
            }
        }
    }

    func restoreCopy(of pipeline: String) async -> WithdrawalResult {
        await committers.run("restoration") { [self] in
            do throws(CacheError) {
                switch try cache.withdrawals.restoreCopy(of: pipeline) {
                case .found: return .left
                case .restored(let generation):
                    restored(pipeline, generation)
                    republished(pipeline, generation)
                    return .done(generation)
                case .lost: return .nothing
                }
            } catch {
                notRestored(pipeline, error)
                return .failed
            }
        }
    }

    func putBack(_ definition: PipelineDefinition) async -> WithdrawalResult {
        await committers.run("withdrawal") { [self] in
            // The next run reports a group that does not exist.
            guard let destination = try? CacheDestination(definition) else { return .failed }
            return attempt(definition.name, else: .failed) { () throws(CacheError) in
                try cache.withdrawals.putBack(destination).map { .done($0) } ?? .nothing
            }
        }
    }
}
