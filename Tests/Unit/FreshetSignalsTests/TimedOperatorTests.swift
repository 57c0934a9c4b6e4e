import FreshetSignals
import FreshetTestKit
import Testing

@Suite("Iterations of timed and retrying operators, and their wrong use")
struct TimedOperatorTests {
    struct ValidationError: Error {}

    let executor = SerialTestExecutor()
    let clock = ManualClock()
    let source = SignalSource("s")
    let log = Log()

    /// Logs all elements of a sequence, and its end or failure.
    func consume<S: AsyncSequence & Sendable>(_ sequence: S, _ name: String = "") -> Task<Void, Never> {
        Task(executorPreference: executor) { [log] in
            do {
                for try await element in sequence { log.add("\(name)\(element)") }
                log.add("\(name)end")
            } catch {
                log.add("\(name)\(error)")
            }
        }
    }

    /// An upstream that logs its subscription and its first request, and ends.
    var watched: some AsyncSequence<Int, any Error> & Sendable {
        Making { [log] in
            log.add("subscribed")
            return Steps { () async throws -> Int? in
                log.add("asked")
                return nil
            }
        }
    }

    // MARK: Subscriptions

    @Test("an iterator subscribes to signals and upstreams and runs nothing before its first next()")
    func neverPulled() {
        func check<S: AsyncSequence & Sendable>(_ sequence: S, subscriptions: Int, _ expected: [String]) {
            let before = log.entries.count
            do {
                let iterator = sequence.makeAsyncIterator()
                #expect(source.fire() == subscriptions)
                withExtendedLifetime(iterator) {}
            }
            #expect(source.fire() == 0)
            #expect(clock.sleeperCount == 0)
            #expect(Array(log.entries[before...]) == expected)
        }
        let load: @Sendable (Int) async throws -> Page<Int, Int> = { [log] _ in
            log.add("load")
            return Page([], next: nil)
        }
        let signal = source.signal
        check(signal.debounce(for: .seconds(1), atMost: nil, leading: true, clock: clock), subscriptions: 1, [])
        check(signal.throttle(for: .seconds(1), latest: true, clock: clock), subscriptions: 1, [])
        check(watched.wait(untilOutputFrom: signal), subscriptions: 1, [])
        check(watched.retry(on: signal), subscriptions: 1, ["subscribed"])
        check(paginated(by: signal, first: { try await load(0) }, next: load), subscriptions: 1, [])
        check(signal.prepend(()), subscriptions: 1, [])
        check(signal.scan(0) { count, _ in count + 1 }, subscriptions: 1, [])
        check(signal.replaceError(with: ()), subscriptions: 1, [])
        check(watched.prepend(1).scan(0, +).replaceError(with: 0), subscriptions: 0, ["subscribed"])
    }

    @Test("wait does not subscribe to its upstream before the output, and then releases its signal")
    func waits() throws {
        let task = consume(watched.wait(untilOutputFrom: source.signal))
        try executor.runUntilIdle()
        #expect(log.entries == [])
        #expect(source.fire() == 1)
        try executor.runUntilIdle()
        #expect(log.entries == ["subscribed", "asked", "end"])
        #expect(source.fire() == 0)
        try executor.run { await task.value }
    }

    @Test("a cancelled wait never subscribes to its upstream, though the signal fires at the same time")
    func waitCancelled() throws {
        let task = consume(watched.wait(untilOutputFrom: source.signal))
        try executor.runUntilIdle()
        task.cancel()
        source.fire()
        try executor.runUntilIdle()
        #expect(log.entries == ["end"])
        #expect(source.fire() == 0)
    }

    @Test("each of two iterations of one value has its own state")
    func twoIterations() throws {
        let signal = source.signal
        let attempts = Counter()
        let sequences: [Emitter<Int, any Error>] = [
            Emitter(counted(signal.debounce(for: .seconds(1), atMost: nil, leading: true, clock: clock))),
            Emitter(counted(signal.throttle(for: .seconds(1), latest: true, clock: clock))),
            Emitter(counted(signal.wait(untilOutputFrom: signal))),
            Emitter(counted(signal.prepend((), ()))),
            Emitter(
                paginated(by: signal, first: { Page([1], next: 1) }, next: { Page([$0], next: $0 + 1) })
                    .scan(0) { count, _ in count + 1 }),
            Emitter(
                Making {
                    let attempt = attempts.increment()
                    return Steps { () async throws -> Int? in throw SweepFailure() }.prepend(attempt)
                }.retry(on: signal)),
        ]
        for sequence in sequences {
            let before = log.entries.count
            let first = consume(sequence, "1:")
            try executor.runUntilIdle()
            source.fire()
            try executor.runUntilIdle()
            let ofFirst = log.entries[before...].map { $0.dropFirst(2) }
            let second = consume(sequence, "2:")
            try executor.runUntilIdle()
            first.cancel()
            try executor.runUntilIdle()
            #expect(log.entries.last == "1:end")
            source.fire()
            try executor.runUntilIdle()
            let ofSecond = log.entries[before...].filter { $0.hasPrefix("2:") }.map { $0.dropFirst(2) }
            #expect(ofSecond.count == ofFirst.count, "\(log.entries[before...])")
            second.cancel()
            try executor.runUntilIdle()
            clock.advance(by: .seconds(5))
        }
        #expect(source.fire() == 0)
    }

    /// The number of each element.
    func counted<S: AsyncSequence & Sendable>(
        _ sequence: S
    ) -> some AsyncSequence<Int, any Error> & Sendable where S.Failure == Never, S.Element: Sendable {
        Throwing(base: sequence.scan(0) { count, _ in count + 1 })
    }

    // MARK: Cancellation

    @Test("a cancelled next() takes none of the prepended values")
    func prependCancelled() throws {
        let sequence = source.signal.scan(0) { count, _ in count + 1 }.prepend(7, 8)
        let task = Task(executorPreference: executor) { [log, executor] in
            var iterator = sequence.makeAsyncIterator()
            log.add("\(await iterator.next(isolation: nil) as Int?)")
            withUnsafeCurrentTask { $0?.cancel() }
            log.add("\(await iterator.next(isolation: nil) as Int?)")
            let rest = Handed(iterator)
            // Another task continues.
            await Task(executorPreference: executor) {
                guard var iterator = rest.take() else { return }
                log.add("\(await iterator.next(isolation: nil) as Int?)")
            }.value
        }
        try executor.run { await task.value }
        #expect(log.entries == ["Optional(7)", "nil", "Optional(8)"])
    }

    @Test("an error caused by the cancellation is neither thrown nor replaced nor reported")
    func cancelledErrors() throws {
        let failing = Steps<Int> { [clock] in
            try await clock.sleep(for: .seconds(1))
            return 1
        }
        let clock = clock
        let sequences: [Emitter<Int, any Error>] = [
            Emitter(failing.prepend()), Emitter(failing.scan(0, +)),
            Emitter(failing.wait(untilOutputFrom: CurrentValue(1))),
            Emitter(failing.retry(on: source.signal) { [log] _, _ in log.add("told") }),
            Emitter(failing.debounce(for: .seconds(1), atMost: nil, clock: clock)),
            Emitter(failing.throttle(for: .seconds(1), latest: true, clock: clock)),
            Emitter(Throwing(base: failing.replaceError(with: 7))),
            Emitter(
                paginated(
                    by: nil,
                    first: {
                        try await clock.sleep(for: .seconds(1))
                        return Page([1], next: 1)
                    }, next: { (cursor: Int) in Page([cursor], next: nil) }
                ).scan(0) { $0 + $1.count }),
        ]
        for sequence in sequences {
            let task = consume(sequence)
            try executor.runUntilIdle()
            #expect(clock.sleeperCount == 1)
            task.cancel()
            try executor.runUntilIdle()
            #expect(clock.sleeperCount == 0)
        }
        #expect(log.entries == Array(repeating: "end", count: sequences.count))
    }

    @Test("a sequence that is cancelled during a delivery ends")
    func cancelInside() throws {
        let numbers = source.signal.scan(0) { count, _ in count + 1 }
        let sequences: [Emitter<Int, Never>] = [
            Emitter(numbers.debounce(for: .seconds(1), atMost: nil, leading: true, clock: clock)),
            Emitter(numbers.throttle(for: .seconds(1), latest: false, clock: clock)),
            Emitter(numbers.retry(on: source.signal)), Emitter(numbers.wait(untilOutputFrom: CurrentValue(1))),
        ]
        for sequence in sequences {
            let task = Task(executorPreference: executor) { [log] in
                for await element in sequence {
                    log.add("\(element)")
                    withUnsafeCurrentTask { $0?.cancel() }
                }
                log.add("end")
            }
            try executor.runUntilIdle()
            source.fire()
            source.fire()
            try executor.run { await task.value }
            #expect(source.fire() == 0)
            #expect(clock.sleeperCount == 0)
        }
        #expect(log.entries == Array(repeating: ["1", "end"], count: sequences.count).flatMap { $0 })
    }

    // MARK: Firing from inside

    @Test("a signal can be fired and finished during a delivery")
    func fireInside() throws {
        let debounced = source.signal.debounce(for: .seconds(1), atMost: nil, leading: true, clock: clock)
        let task = Task(executorPreference: executor) { [log, source] in
            for await _ in debounced {
                log.add("element")
                source.fire()
                source.finish()
                source.fire()
            }
            log.add("end")
        }
        try executor.runUntilIdle()
        source.fire()
        try executor.run { await task.value }
        // The firing during the delivery is held, and delivered at the end, which came with it.
        #expect(log.entries == ["element", "element", "end"])
    }

    @Test("a page can be requested during the delivery of the previous one, and in onStatus")
    func pagesFromInside() throws {
        let source = source
        let load: @Sendable (Int) async throws -> Page<Int, Int> = { Page([$0], next: $0 == 50 ? nil : $0 + 1) }
        for inside in ["delivery", "status"] {
            let pages = paginated(by: source.signal, first: { try await load(1) }, next: load) { status in
                if case .dormant = status, inside == "status" { source.fire() }
            }
            let items = try executor.run {
                var items: [Int] = []
                for try await page in pages {
                    items += page
                    if inside == "delivery" {
                        source.fire()
                        source.fire()
                    }
                }
                return items
            }
            #expect(items == Array(1...50))
        }
    }

    @Test("an attempt can be requested in onFailure, a thousand times")
    func retryFromInside() throws {
        let source = source
        let attempts = Counter()
        let upstream = Making {
            let attempt = attempts.increment()
            return Steps { () async throws -> Int? in
                if attempt <= 1_000 { throw SweepFailure() }
                return attempt
            }
        }
        let element = try executor.run {
            let told = Counter()
            let sequence = upstream.retry(on: source.signal) { _, attempt in
                told.increment()
                #expect(attempt == told.value)
                source.fire()
                source.fire()
            }
            for try await element in sequence {
                #expect(told.value == 1_000)
                return element
            }
            return 0
        }
        #expect(element == 1_001)
    }

    @Test("a body that throws immediately fails the result immediately, or waits for the signal if there is one")
    func throwsAtOnce() throws {
        let failing = Steps { () async throws -> Int? in throw SweepFailure() }
        let clock = clock
        let sequences: [Emitter<Int, any Error>] = [
            Emitter(failing.prepend()), Emitter(failing.scan(0, +)),
            Emitter(failing.wait(untilOutputFrom: CurrentValue(1))),
            Emitter(failing.debounce(for: .seconds(1), atMost: nil, clock: clock)),
            Emitter(failing.throttle(for: .seconds(1), latest: true, clock: clock)),
            Emitter(failing.retry(on: Signal.merge())),
            Emitter(
                paginated(
                    by: source.signal, first: { throw SweepFailure() },
                    next: { (cursor: Int) in Page([cursor], next: nil) }
                )
                .scan(0) { $0 + $1.count }),
        ]
        for sequence in sequences { _ = consume(sequence) }
        try executor.runUntilIdle()
        #expect(log.entries == Array(repeating: "SweepFailure()", count: sequences.count))
        let task = consume(failing.retry(on: source.signal), "retry ")
        for _ in 1...3 {
            try executor.runUntilIdle()
            source.fire()
        }
        source.finish()
        try executor.run { await task.value }
        #expect(log.entries.last == "retry SweepFailure()")
    }

    @Test("a signal that fires during the subscription of an attempt counts as an output since its start")
    func fireDuringSubscription() throws {
        let source = source
        let attempts = Counter()
        let upstream = Making {
            source.fire()
            let attempt = attempts.increment()
            return Steps { () async throws -> Int? in
                if attempt < 10 { throw SweepFailure() }
                return nil
            }
        }
        let task = consume(upstream.retry(on: source.signal))
        try executor.run { await task.value }
        #expect(attempts.value == 10)
        #expect(log.entries == ["end"])
    }

    @Test("a signal that fires when the waiting upstream subscribes is received by the upstream alone")
    func fireDuringWait() throws {
        let source = source
        let upstream = Making {
            source.fire()
            return source.signal.prepend(())
        }
        let task = consume(upstream.wait(untilOutputFrom: source.signal))
        try executor.runUntilIdle()
        source.fire()
        try executor.runUntilIdle()
        #expect(log.entries == ["()"])
        #expect(source.fire() == 1)
        task.cancel()
        try executor.run { await task.value }
    }

    // MARK: Load

    @Test("a million pending firings are one burst and one output")
    func million() throws {
        let clock = clock
        // A thousand listings of one source, which fires a thousand times.
        let signal = Signal.merge(repeatElement(source.signal, count: 1_000))
        let attempts = Counter()
        let retried = Making {
            attempts.increment()
            return Steps { () async throws -> Int? in throw SweepFailure() }
        }.retry(on: signal)
        let debounced = signal.debounce(for: .seconds(1), atMost: nil, leading: true, clock: clock)
        let pages = paginated(by: signal, first: { Page([1], next: 1) }, next: { Page([$0], next: $0 + 1) })
        let sequences: [(String, Emitter<Int, any Error>)] = [
            ("debounce", Emitter(counted(debounced))),
            ("wait", Emitter(counted(signal.prepend(()).wait(untilOutputFrom: signal)))),
            ("retry", Emitter(retried)), ("page", Emitter(pages.scan(0) { $0 + $1.count })),
        ]
        let iterators = sequences.map { ($0, Handed($1.makeAsyncIterator())) }
        for _ in 0..<1_000 { source.fire() }
        let tasks = iterators.map { name, iterator in
            Task(executorPreference: executor) { [log] in
                guard var iterator = iterator.take() else { return }
                while try await iterator.next() != nil { log.add(name) }
            }
        }
        try clock.advance(by: .seconds(5), draining: executor)
        let counts = Dictionary(log.entries.map { ($0, 1) }, uniquingKeysWith: +)
        #expect(counts == ["debounce": 2, "wait": 1, "page": 1])
        #expect(attempts.value == 2)
        for task in tasks { task.cancel() }
        try executor.runUntilIdle()
        #expect(source.fire() == 0)
    }

    @Test("an upstream that never suspends starves no other task on its executor")
    func neverSuspends() throws {
        let numbers = Counter()
        let endless = Steps { () async throws -> Int? in numbers.increment() }
        let clock = clock
        for sequence in [
            Emitter(endless.debounce(for: .seconds(1), atMost: nil, leading: true, clock: clock)),
            Emitter(endless.throttle(for: .zero, latest: true, clock: clock)),
        ] {
            let first = try executor.run {
                for try await number in sequence { return number }
                return 0
            }
            #expect(first > 0)
        }
    }

    @Test("100,000 pages: no page is kept, and the end is reached")
    func manyPages() throws {
        let alive = Token()
        let most = Counter()
        let load: @Sendable (Int) async throws -> Page<Token, Int> = { number in
            let token = Token(alive)
            while most.value < alive.children { most.increment() }
            return Page([token], next: number == 100_000 ? nil : number + 1)
        }
        let count = try executor.run {
            var count = 0
            for try await page in paginated(by: nil, initially: .max, first: { try await load(1) }, next: load) {
                count += page.count
            }
            return count
        }
        #expect(count == 100_000)
        #expect((1...2).contains(most.value))
        #expect(alive.children == 0)
    }
}

/// A sequence that cannot fail, with a failure type.
private struct Throwing<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Failure == Never {
    typealias Element = Base.Element
    typealias Failure = any Error

    let base: Base

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws -> Element? {
            await base.next(isolation: isolation)
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }
}
