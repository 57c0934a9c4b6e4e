import FreshetCache
import FreshetConfiguration
import FreshetEventLoop
import FreshetPipelines
import Logging

/// How much room the cache may take.
extension Supervisor {
    /// Removes what an earlier process has left, a little at a time: others need the workers too.
    func removeLeftovers() async {
        guard let cache = parts?.cache else { return }
        let files = [hookFiles, checkFiles]
        while !isEnding, await pools.cache.run("leftovers", { cache.removeLeftovers() }) {}
        for files in files {
            while !isEnding, await pools.cache.run("leftovers", { files.removeLeftovers() }) {}
        }
    }

    /// Has the cache keep to a new definition.
    func applyRoom(_ daemon: DaemonDefinition) async {
        guard let cache = parts?.cache else { return }
        let room = CacheQuota(daemon)
        do throws(CacheError) {
            try await pools.cache.run("index") { () throws(CacheError) in try cache.setRoom(room) }
        } catch {
            log.say(.cacheTrouble, [.pipeline: .string("none"), .error: .string(error.description)])
        }
    }

    /// Says what went for room, and has those forget it who know of it.
    var removedForRoom: @Sendable (RemovedContent) -> Void {
        { [weak self, news] removed in
            news.say(
                .removedForRoom,
                [
                    .pipeline: .string(removed.pipeline ?? "none"), .bytes: .stringConvertible(removed.bytes),
                    .content: .string(removed.text),
                ])
            let refused = removed.items.filter { $0.refused != nil }
            if refused.isEmpty { return }
            self?.adopt { [weak self] in await self?.forgetRefused(refused) }
        }
    }

    /// Notes that what checks refused is not kept any more.
    private func forgetRefused(_ items: [RemovedContent.Item]) async {
        for item in items {
            guard let digest = item.refused?.description, let store = parts?.store else { continue }
            // The same may have been refused again since.
            if await store.keepsRefused(item.pipeline, digest) { continue }
            pipelines[item.pipeline]?.runner.keepsNotRefused(digest)
        }
    }
}

extension RemovedContent {
    /// So many are named one by one.
    private static let named = 10

    /// Such as `jwks 3, jwks 4, prices (refused), 2 more`.
    var text: String {
        var parts = items.prefix(Self.named).map { item in
            "\(item.pipeline) \(item.generation.map { "\($0)" } ?? "(refused)")"
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
