import FreshetCache
import Logging
import Synchronization

/// Logs content that the cache has removed to free space, and passes rejected candidates among it on.
///
/// Safe to call from any thread.
final class RemovedContentLog: Sendable {
    typealias Handler = @Sendable ([RemovedContent.Item]) -> Void

    private let limiter: LogLimiter
    private let handler = Mutex<Handler?>(nil)

    init(_ limiter: LogLimiter) { self.limiter = limiter }

    /// Sets the handler of rejected candidates. Before that, no pipeline knows one.
    func onRejected(_ handle: @escaping Handler) {
        handler.withLock { $0 = handle }
    }

    func log(_ removed: RemovedContent) {
        limiter.log(
            .removedForSpace,
            [
                .pipeline: .string(removed.pipeline ?? "none"), .bytes: .stringConvertible(removed.bytes),
                .content: .string(removed.text),
            ])
        let rejected = removed.items.filter { $0.rejected != nil }
        if !rejected.isEmpty { handler.withLock { $0 }?(rejected) }
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
