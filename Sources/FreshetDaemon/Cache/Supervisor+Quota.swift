import FreshetCache
import FreshetConfiguration
import FreshetEventLoop
import FreshetPipelines
import Logging

/// The disk quota of the cache.
extension Supervisor {
    /// Removes leftovers of earlier processes in small steps, because other work needs the worker threads too.
    func removeLeftovers() async {
        guard let cache = parts?.cache else { return }
        let files = [hookFiles, checkFiles]
        while !isEnding, await pools.cache.run("leftovers", { cache.leftovers.remove() }) {}
        for files in files {
            while !isEnding, await pools.cache.run("leftovers", { files.removeLeftovers() }) {}
        }
    }

    /// Applies the quota of a new configuration to the cache.
    func applyQuota(_ daemon: DaemonDefinition) async {
        guard let cache = parts?.cache else { return }
        let quota = CacheQuota(daemon)
        do throws(CacheError) {
            try await pools.cache.run("index") { () throws(CacheError) in try cache.space.setQuota(quota) }
        } catch {
            limiter.log(.cacheUpdateFailed, [.pipeline: .string("none"), .error: .string(error.description)])
        }
    }

    /// Called when the cache has removed content to free space: logs it, and updates the pipelines whose candidates are
    /// gone.
    var removedForSpace: @Sendable (RemovedContent) -> Void {
        { [weak self, limiter] removed in
            limiter.log(
                .removedForSpace,
                [
                    .pipeline: .string(removed.pipeline ?? "none"), .bytes: .stringConvertible(removed.bytes),
                    .content: .string(removed.text),
                ])
            let rejected = removed.items.filter { $0.rejected != nil }
            if rejected.isEmpty { return }
            self?.adopt { [weak self] in await self?.forgetRejected(rejected) }
        }
    }

    /// Updates the pipelines whose rejected candidates are not kept any more.
    private func forgetRejected(_ items: [RemovedContent.Item]) async {
        for item in items {
            guard let digest = item.rejected, let store = parts?.store else { continue }
            // A check may have rejected the same content again since.
            if await store.keepsRejected(item.pipeline, digest) { continue }
            pipelines[item.pipeline]?.runner.keepsNotRejected(digest)
        }
    }
}

extension RemovedContent {
    /// The maximum number of items that the text names.
    private static let named = 10

    /// Such as `generation 3 of jwks, rejected content of prices, 2 more`.
    var text: String {
        var parts = items.prefix(Self.named).map { item in
            "\(item.generation.map { "generation \($0)" } ?? "rejected content") of \(item.pipeline)"
        }
        if items.count > parts.count { parts.append("\(items.count - parts.count) more") }
        return parts.joined(separator: ", ")
    }
}

extension CacheQuota {
    init(_ daemon: DaemonDefinition) {
        let reserve: FreeSpaceReserve =
            switch daemon.minFree {
            case .standard: .standard
            case .bytes(let bytes): FreeSpaceReserve(percent: 100, bytes: bytes)
            case .percent(let share): FreeSpaceReserve(percent: share, bytes: .max)
            }
        self.init(limit: daemon.cacheLimit.map { Int64(clamping: $0) }, reserve: reserve)
    }
}
