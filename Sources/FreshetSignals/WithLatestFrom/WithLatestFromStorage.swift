/// One iteration of a `withLatestFrom`: a child for each side.
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

    /// How often the other side gets its turn before the upstream is asked: so many steps an operator may take, driver
    /// and children included, to deliver what is there.
    private static var turnsOfOther: Int { 8 }

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
            group.addTask { await self.listen(driver) }
            group.addTask { await self.pair(driver, in: round) }
        }
    }

    /// Keeps the latest value of the other side.
    private func listen(_ driver: Owner) async {
        let hasEnded = await driver.exhaust(other, rethrowing: rethrowOther) { value in
            // Released after the lock: what a deinitializer does is not ours to know.
            let replaced = machine.withLock { $0.otherDelivered(value) }
            _ = replaced
            // A side that never suspends must not keep the other from its turn.
            await Task.yield()
            return !Task.isCancelled
        }
        if hasEnded, machine.withLock({ $0.endsWithOther }) {
            driver.conclude()
        }
    }

    /// Pairs the upstream's elements.
    private func pair(_ driver: Owner, in round: Owner.Round) async {
        for _ in 0..<Self.turnsOfOther where machine.withLock({ $0.latest == nil }) {
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
