import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Logging

/// Removes the data of pipelines that are not configured.
extension Supervisor {
    func unowned() async throws(ControlError) -> [UnownedPipeline] {
        let configured = try await configuredNames()
        let store = try cacheStore()
        do throws(CacheError) {
            return try await store.holdings(besides: configured).map(UnownedPipeline.init)
        } catch {
            throw .failed(name: nil, reason: error.description)
        }
    }

    func prune(_ names: [String], caller: String) async throws(ControlError) -> ControlMessage.Pruned {
        // With the lock, a reload that adds a pipeline happens either before, and the pipeline is configured, or after,
        // and the pipeline starts without old data.
        await reloadLock.acquire()
        defer { reloadLock.release() }
        let configured = try await configuredNames()
        let store = try cacheStore()
        var pruned = ControlMessage.Pruned()
        for name in names where !configured.contains(name) {
            if isEnding {
                pruned.failed.append(UnprunedPipeline(name: name, reason: "the daemon is stopping"))
                continue
            }
            let holding: CacheUsage?
            do throws(CacheError) {
                holding = try await store.prune(name)
            } catch {
                // A failure does not affect the other pipelines.
                pruned.failed.append(UnprunedPipeline(name: name, reason: error.description))
                continue
            }
            guard let holding else { continue }
            limiter.log(
                .pruned,
                [
                    .pipeline: .string(name), .file: .string(holding.file ?? "none"),
                    .bytes: .stringConvertible(holding.bytes), .caller: .string(caller),
                ])
            pruned.pipelines.append(UnownedPipeline(holding))
        }
        return pruned
    }

    /// The names of the active pipelines, and of all pipelines that have configuration files, valid or not.
    private func configuredNames() async throws(ControlError) -> Set<String> {
        let loaded = await reader.load()
        if let error = loaded.daemonDiagnostics.first(where: { $0.severity == .error }) {
            throw .failed(
                name: nil,
                reason: "nothing was removed, because the configuration cannot be read: \(error.sentence)")
        }
        return Set(loaded.files.keys).union(loaded.pipelines.map(\.name)).union(loaded.invalid.keys)
            .union(configuration.pipelines.map(\.name)).union(pipelines.keys).union(invalid.keys)
    }
}

extension CacheStore {
    func holdings(besides configured: Set<String>) async throws(CacheError) -> [CacheUsage] {
        try await workers.run("index") { [cache] () throws(CacheError) in try cache.pruner.holdings(besides: configured)
        }
    }

    func prune(_ pipeline: String) async throws(CacheError) -> CacheUsage? {
        try await workers.run("prune") { [cache] () throws(CacheError) in try cache.pruner.prune(pipeline) }
    }
}

extension UnownedPipeline {
    init(_ holding: CacheUsage) {
        self.init(
            name: holding.pipeline, file: holding.file, generations: Int64(holding.generations), bytes: holding.bytes,
            committedAt: holding.committedAt?.microseconds)
    }
}
