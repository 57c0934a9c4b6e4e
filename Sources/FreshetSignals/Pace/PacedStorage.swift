/// One iteration of an operator that holds back elements: the driver reads the upstream, and a child keeps the time.
final class PacedStorage<Base: AsyncSequence & Sendable, C: Clock, Rule: PaceRule>: Sendable
where Base.Element: Sendable, C.Duration == Duration, C.Instant == Rule.Instant {
    typealias Machine = PacedStateMachine<Base.Element, Rule, Waiter>
    typealias PacedDriver = Driver<Base.Element, Base.Failure>

    private let upstream: UnsafeTransfer<Base.AsyncIterator>
    private let clock: C
    private let machine: Lock<Machine>

    init(_ upstream: sending Base.AsyncIterator, rule: Rule, clock: C) {
        self.upstream = UnsafeTransfer(upstream)
        self.clock = clock
        machine = Lock(Machine(rule: rule))
    }

    /// A `next()` found no element.
    func demand(_ driver: PacedDriver) {
        perform({ $0.requested(at: $1) }, driver)
    }

    /// The operator's work, as the driver does it.
    func operate(_ driver: PacedDriver) async throws(Base.Failure) {
        let failure = await withTaskGroup(of: Void.self, returning: Base.Failure?.self) { children in
            children.addTask { await self.keepTime(driver) }
            defer { children.cancelAll() }
            return await read(driver)
        }
        // The held element is dropped then.
        if let failure { throw failure }
        perform({ $0.upstreamEnded(at: $1) }, driver)
        await keepTime(driver)
    }

    /// How many elements of an upstream that never suspends are read before this task yields to the others on a serial
    /// executor.
    private static var readsBeforeYield: Int { 256 }

    private func read(_ driver: PacedDriver) async -> Base.Failure? {
        guard var upstream = upstream.open() else { return nil }
        var reads = 0
        do throws(Base.Failure) {
            try await upstream.exhaust { element in
                perform({ $0.element(element, at: $1) }, driver)
                reads += 1
                if reads.isMultiple(of: Self.readsBeforeYield) { await Task.yield() }
                return !Task.isCancelled
            }
            return nil
        } catch {
            return error
        }
    }

    /// Delivers each held element when it is due. Ends when there will be no more, or when the task is cancelled.
    private func keepTime(_ driver: PacedDriver) async {
        machine.withLock { $0.timekeeperArrived() }
        defer { machine.withLock { $0.timekeeperLeft() } }
        while !Task.isCancelled {
            switch machine.withLock({ $0.timeAction() }) {
            case .sleep(let due):
                // The sleep throws if the task is cancelled; the loop checks for that.
                try? await clock.sleep(until: due, tolerance: nil)
                if !Task.isCancelled { perform({ $0.timePassed(at: $1) }, driver) }
            case .wait:
                await waitUntilResumed(isolation: nil) { waiter in
                    machine.withLock { $0.timekeeperSleeps(waiter) }
                } onCancel: {
                    machine.withLock { $0.cancelTimekeeper() }
                }
            case .finish:
                return
            }
        }
    }

    private func perform(_ event: (inout Machine, C.Instant) -> Machine.Action, _ driver: PacedDriver) {
        // The clock is read under the lock, so that the machine's time never goes back.
        let action = machine.withLock { event(&$0, clock.now) }
        if let element = action.delivery { driver.answer(element) }
        action.wake?.resume()
    }
}

/// An operator that holds back elements.
struct Paced<Base: AsyncSequence & Sendable, C: Clock, Rule: PaceRule>: AsyncSequence, Sendable
where Base.Element: Sendable, C.Duration == Duration, C.Instant == Rule.Instant {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let base: Base
    let rule: Rule
    let clock: C

    func makeAsyncIterator() -> DriverIterator<Element, Failure> {
        let storage = PacedStorage<Base, C, Rule>(base.makeAsyncIterator(), rule: rule, clock: clock)
        return DriverIterator(onDemand: { storage.demand($0) }) { driver throws(Failure) in
            try await storage.operate(driver)
        }
    }
}
