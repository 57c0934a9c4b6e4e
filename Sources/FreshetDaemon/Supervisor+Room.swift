import FreshetCache
import FreshetConfiguration
import FreshetEventLoop
import FreshetPipelines
import Logging

/// How much room the cache may take.
extension Supervisor {
    /// Has the cache keep to a new definition.
    func applyRoom(_ daemon: DaemonDefinition) async {
        guard let cache = parts?.cache else { return }
        let room = CacheRoom(daemon)
        do throws(CacheError) {
            try await workers.run("index") { () throws(CacheError) in try cache.setRoom(room) }
        } catch {
            log.say(.cacheTrouble, [.pipeline: .string("none"), .error: .string(error.description)])
        }
    }

    /// Says what went for room.
    var removedForRoom: @Sendable (RemovedContent) -> Void {
        { [news] removed in
            news.say(
                .removedForRoom,
                [
                    .pipeline: .string(removed.pipeline ?? "none"), .bytes: .stringConvertible(removed.bytes),
                    .content: .string(removed.text),
                ])
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

extension CacheRoom {
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
