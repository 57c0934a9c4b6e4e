extension AsyncIteratorProtocol {
    /// Asks for elements to the end and hands each to `take`.
    ///
    /// When `take` says false they are no longer wanted, and the task is cancelled or is about to be. The iterator is
    /// then asked on until it ends, so that it has cleaned up when this returns; unless it goes on in spite of the
    /// cancellation.
    ///
    /// - Parameter take: Returns false once the element is not wanted, also because the task was cancelled.
    mutating func exhaust(_ take: (Element) async -> Bool) async throws(Failure) {
        while true {
            let wasCancelled = Task.isCancelled
            guard let element = try await next(isolation: nil) else { return }
            if await take(element) { continue }
            if wasCancelled { return }
            // The cancellation may still be on its way; a sequence that never suspends must not keep it from coming.
            await Task.yield()
        }
    }
}

extension Driver {
    /// A child's work: asks an upstream for elements to the end, and concludes the iteration if it fails.
    ///
    /// - Parameters:
    ///   - upstream: Not opened before.
    ///   - rethrow: What its failure is to the consumer.
    ///   - take: Returns false once the element is not wanted.
    /// - Returns: Whether the upstream ended by itself: neither failed nor was cancelled.
    func exhaust<Iterator: AsyncIteratorProtocol>(
        _ upstream: UnsafeTransfer<Iterator>, rethrowing rethrow: (Iterator.Failure) -> Failure,
        _ take: (Iterator.Element) async -> Bool
    ) async -> Bool {
        guard var iterator = upstream.open() else { return false }
        do throws(Iterator.Failure) {
            try await iterator.exhaust(take)
            return !Task.isCancelled
        } catch {
            conclude(rethrow(error))
            return false
        }
    }
}

/// Runs a child for each number below `count`; returns when all have ended.
///
/// To remove a child that ended a task group walks over those that were added before it. So that many children take
/// linear time whatever the order in which they end, no group gets more than a few hundred: beyond
/// ``childrenPerGroup`` there are groups within a group.
func withChildren(_ count: Int, _ body: @escaping @Sendable (Int) async -> Void) async {
    await withDiscardingTaskGroup { group in
        guard count > childrenPerGroup else {
            for number in 0..<count {
                group.addTask { await body(number) }
            }
            return
        }
        for start in stride(from: 0, to: count, by: childrenPerGroup) {
            group.addTask {
                await withDiscardingTaskGroup { group in
                    for number in start..<min(start + childrenPerGroup, count) {
                        group.addTask { await body(number) }
                    }
                }
            }
        }
    }
}

/// How many children share a group: about the root of the largest fan-out that is meant to be quick, 100,000.
private let childrenPerGroup = 256
