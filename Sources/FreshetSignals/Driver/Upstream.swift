extension AsyncIteratorProtocol {
    /// Requests elements to the end and passes each to `take`.
    ///
    /// If `take` returns false, the elements are no longer needed, and the task is cancelled or is about to be.
    /// Elements are then still requested until the iterator ends, so that it has cleaned up when this method returns;
    /// unless it continues in spite of the cancellation.
    ///
    /// - Parameter take: Returns false if the element is no longer needed, also because the task was cancelled.
    mutating func exhaust(_ take: (Element) async -> Bool) async throws(Failure) {
        while true {
            let wasCancelled = Task.isCancelled
            guard let element = try await next(isolation: nil) else { return }
            if await take(element) { continue }
            if wasCancelled { return }
            // The cancellation may not have arrived yet; a sequence that never suspends must not prevent it.
            await Task.yield()
        }
    }
}

extension Driver {
    /// Requests elements of an upstream to the end, and concludes the iteration if the upstream fails. A child's work.
    ///
    /// - Parameters:
    ///   - upstream: An iterator that was not opened before.
    ///   - rethrow: Converts the upstream's failure to the consumer's.
    ///   - take: Returns false if the element is no longer needed.
    /// - Returns: Whether the upstream ended by itself: it neither failed nor was cancelled.
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

/// Runs a child for each number below `count`; returns when all children have ended.
///
/// When a child ends, a task group walks over the children that were added before it. To keep the total time linear
/// whatever the order in which the children end, no group gets more than ``childrenPerGroup`` children; more children
/// are distributed over nested groups.
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

/// The maximum number of children of a group: about the square root of 100,000, the largest fan-out that has to be
/// fast.
private let childrenPerGroup = 256
