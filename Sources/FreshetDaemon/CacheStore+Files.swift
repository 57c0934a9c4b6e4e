import FreshetCache
import FreshetPipelines

extension LocalCache {
    /// Assigns the files of a configuration to its pipelines.
    ///
    /// - Returns: the pipelines that had another file or none, or lost theirs.
    @discardableResult
    func assign(_ definitions: [PipelineDefinition]) throws(CacheError) -> Set<String> {
        let moved = try ownership.assign(
            definitions.map { (pipeline: $0.name, file: $0.cache.readerFile) },
            sets: Set(definitions.filter { !$0.cache.files.isEmpty }.map(\.name)))
        ownership.awaitCommits(of: moved)
        return moved
    }
}
