import FreshetCache
import FreshetEventLoop
import FreshetPipelines

/// Copies that readers do not find, since they are too old for them.
extension CacheStore {
    func withdraw(_ pipeline: String, unless isMoot: @escaping @Sendable () -> Bool) async -> WithdrawalResult {
        await workers.run("withdrawal") { [self] in
            attempt(pipeline, else: .failed) { () throws(CacheError) in
                let withdrawn = try cache.withdraw(
                    pipeline, at: WallTime(microseconds: WallClock.now), unless: isMoot)
                if let withdrawn { return .done(OfferedGeneration(withdrawn)) }
                return try cache.keepsCopy(pipeline) ? .left : .nothing
            }
        }
    }

    func putBack(_ definition: PipelineDefinition) async -> WithdrawalResult {
        await workers.run("withdrawal") { [self] in
            // A group that is not there is named by the next run.
            guard let destination = try? CacheDestination(definition) else { return .failed }
            return attempt(definition.name, else: .failed) { () throws(CacheError) in
                try cache.putBack(destination).map { .done(OfferedGeneration($0)) } ?? .nothing
            }
        }
    }
}
