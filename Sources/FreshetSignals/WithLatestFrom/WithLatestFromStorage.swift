/// One iteration of a `withLatestFrom`: a child for each sequence.
final class WithLatestFromStorage<Base: AsyncSequence & Sendable, Other: AsyncSequence & Sendable, Failure: Error>:
    Sendable
where Base.Element: Sendable, Other.Element: Sendable {
    typealias Owner = Driver<(Base.Element, Other.Element), Failure>
    typealias Machine = WithLatestFromStateMachine<Other.Element>

    private let base: UnsafeTransfer<Base.AsyncIterator>
    private let other: UnsafeTransfer<Other.AsyncIterator>
    private let rethrowBase: @Sendable (Base.Failure) -> Failure
    private let rethrowOther: @Sendable (Other.Failure) -> Failure
    private let machine = Lock(Machine())

    /// How often the child of the upstream yields before it reads the upstream, so that the other sequence can deliver
    /// an element that is already available. An operator needs at most this many steps for that, driver and children
    /// included.
    private static var yieldsToOther: Int { 8 }

    init(
        _ base: UnsafeTransfer<Base.AsyncIterator>, _ other: UnsafeTransfer<Other.AsyncIterator>,
        rethrowBase: @escaping @Sendable (Base.Failure) -> Failure,
        rethrowOther: @escaping @Sendable (Other.Failure) -> Failure
    ) {
        self.base = base
        self.other = other
        self.rethrowBase = rethrowBase
        self.rethrowOther = rethrowOther
    }

    /// The operator's work, as the driver does it.
    func operate(_ driver: Owner) async {
        let round = driver.beginRound()
        await withDiscardingTaskGroup { group in
            group.addTask { await self.keepLatest(driver) }
            group.addTask { await self.pair(driver, in: round) }
        }
    }

    /// Keeps the latest value of the other side.
    private func keepLatest(_ driver: Owner) async {
        let hasEnded = await driver.exhaust(other, rethrowing: rethrowOther) { value in
            // Release it after the lock: its deinitializer may run arbitrary code.
            let replaced = machine.withLock { $0.otherDelivered(value) }
            _ = replaced
            // A sequence that never suspends must not starve the other one.
            await Task.yield()
            return !Task.isCancelled
        }
        if hasEnded, machine.withLock({ $0.endsWithOther }) {
            driver.conclude()
        }
    }

    /// Pairs the upstream's elements.
    private func pair(_ driver: Owner, in round: Owner.Round) async {
        for _ in 0..<Self.yieldsToOther where machine.withLock({ $0.latest == nil }) {
            await Task.yield()
        }
        let hasEnded = await driver.exhaust(base, rethrowing: rethrowBase) { element in
            if let value = machine.withLock({ $0.latest }) {
                return await driver.offer((element, value), in: round)
            }
            await Task.yield()
            return !Task.isCancelled
        }
        if hasEnded {
            driver.conclude()
        }
    }
}
