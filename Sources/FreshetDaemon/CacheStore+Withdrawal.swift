import FreshetCache
import FreshetEventLoop
import FreshetPipelines

/// Copies that readers do not find, since they are too old for them. Many expire at one time: they wait for the disk
/// together, as commits do.
extension CacheStore {
    func withdraw(_ pipeline: String, unless isMoot: @escaping @Sendable () -> Bool) async -> WithdrawalResult {
        await committers.run("withdrawal") { [self] in
            attempt(pipeline, else: .failed) { () throws(CacheError) -> WithdrawalResult in
                switch try cache.withdraw(pipeline, at: WallTime(microseconds: WallClock.now), unless: isMoot) {
                case .withdrawn(let generation): .done(CurrentGeneration(generation))
                case .damaged(let generation): .damaged(CurrentGeneration(generation))
                case .left: try cache.keepsCopy(pipeline) ? .left : .nothing
                }
            }
        }
    }

    func putBack(_ definition: PipelineDefinition) async -> WithdrawalResult {
        await committers.run("withdrawal") { [self] in
            // A group that is not there is named by the next run.
            guard let destination = try? CacheDestination(definition) else { return .failed }
            return attempt(definition.name, else: .failed) { () throws(CacheError) in
                try cache.putBack(destination).map { .done(CurrentGeneration($0)) } ?? .nothing
            }
        }
    }
}
