import FreshetCache
import FreshetPipelines

extension LocalCache {
    /// Assigns the files of a configuration to its pipelines.
    func assign(_ definitions: [PipelineDefinition]) throws(CacheError) {
        let moved = try ownership.assign(
            definitions.map { (pipeline: $0.name, file: $0.cache.readerFile) },
            sets: Set(definitions.filter { !$0.cache.files.isEmpty }.map(\.name)))
        ownership.awaitCommits(of: moved)
    }
}
