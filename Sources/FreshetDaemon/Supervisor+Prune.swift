import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import Logging

/// Removing what no pipeline owns.
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

    func prune(_ names: [String], asker: String) async throws(ControlError) -> ControlMessage.Pruned {
        // A reload that adds a pipeline comes before, and then it is configured, or after, and then it is new.
        await takeReloadTurn()
        defer { endReloadTurn() }
        let configured = try await configuredNames()
        let store = try cacheStore()
        var pruned = ControlMessage.Pruned()
        for name in names where !configured.contains(name) {
            if isEnding {
                pruned.failed.append(UnprunedPipeline(name: name, reason: "the daemon stops"))
                continue
            }
            let holding: CacheUsage?
            do throws(CacheError) {
                holding = try await store.prune(name)
            } catch {
                // The others have nothing to do with it.
                pruned.failed.append(UnprunedPipeline(name: name, reason: error.description))
                continue
            }
            guard let holding else { continue }
            news.say(
                .pruned,
                [
                    .pipeline: .string(name), .file: .string(holding.file ?? "none"),
                    .bytes: .stringConvertible(holding.bytes), .asker: .string(asker),
                ])
            pruned.pipelines.append(UnownedPipeline(holding))
        }
        return pruned
    }

    /// The pipelines that are in force, and those of which there are files, sound or not.
    private func configuredNames() async throws(ControlError) -> Set<String> {
        let loaded = await load()
        if let fault = loaded.daemonDiagnostics.first(where: { $0.severity == .error }) {
            throw .failed(
                name: nil,
                reason: "nothing is removed as long as it is not known what is configured: \(fault.sentence)")
        }
        return Set(loaded.files.keys).union(loaded.pipelines.map(\.name)).union(loaded.faulty.keys)
            .union(configuration.pipelines.map(\.name)).union(pipelines.keys).union(faulty.keys)
    }
}

extension CacheStore {
    func holdings(besides configured: Set<String>) async throws(CacheError) -> [CacheUsage] {
        try await workers.run("index") { [cache] () throws(CacheError) in try cache.holdings(besides: configured) }
    }

    func prune(_ pipeline: String) async throws(CacheError) -> CacheUsage? {
        try await workers.run("prune") { [cache] () throws(CacheError) in try cache.prune(pipeline) }
    }
}

extension UnownedPipeline {
    init(_ holding: CacheUsage) {
        self.init(
            name: holding.pipeline, file: holding.file, generations: Int64(holding.generations), bytes: holding.bytes,
            committedAt: holding.committedAt?.microseconds)
    }
}
