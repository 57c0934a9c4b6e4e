import FreshetSignals
import FreshetTestKit
import TestSupport
import Testing

@testable import FreshetPipelines

@Suite("The places of a run with several requests", .hangLimit)
final class RunPermitsTests {
    private let executor = SerialTestExecutor()
    private var runs: [Run] = []
    private static let a = HTTPOrigin(of: "https://a.example/")
    private static let b = HTTPOrigin(of: "https://b.example/")

    // A test may end before its requests do.
    deinit {
        for run in runs { run.abandon() }
        _ = try? executor.runUntilIdle()
    }

    private func makeRun(_ slots: RequestLimiter, _ pipeline: UInt64, at origin: HTTPOrigin?) -> Run {
        let run = Run(slots, pipeline, at: origin, executor)
        runs.append(run)
        return run
    }

    /// A run, and requests of it that end when a test says so.
    private final class Run: Sendable {
        let places: RunPermits
        private let executor: SerialTestExecutor
        private let ends = Lock<[String: CurrentValue<Bool?>]>([:])
        private let tasks = Lock<[String: Task<Void, Never>]>([:])
        private let started = Lock<[String]>([])
        private let told = Told()

        init(_ slots: RequestLimiter, _ pipeline: UInt64, at origin: HTTPOrigin?, _ executor: SerialTestExecutor) {
            self.executor = executor
            let reply = slots.request(for: pipeline, at: origin) {}
            let ticket: RequestLimiter.Ticket? = if case .granted(let ticket) = reply { ticket } else { nil }
            places = RunPermits(slots, for: pipeline, beginningWith: ticket, at: origin) { [told] in told.add($0) }
        }

        private final class Told: Sendable {
            private let stalls = Lock<[Bool]>([])
            func add(_ isStalled: Bool) { stalls.withLock { $0.append(isStalled) } }
            var all: [Bool] { stalls.withLock { $0 } }
        }

        /// What was told of all that it asks waiting.
        var stallsTold: [Bool] { told.all }
        var underWay: [String] { started.withLock { $0 } }

        func begin(_ name: String, at origin: HTTPOrigin?) throws {
            let end = CurrentValue<Bool?>(nil)
            ends.withLock { $0[name] = end }
            let task = Task<Void, Never>(executorPreference: executor) { [self] in
                _ = try? await places.pass(at: origin) { () throws(FetchError) in
                    started.withLock { $0.append(name) }
                    var isGood = false
                    for await hasEnded in end {
                        guard let hasEnded else { continue }
                        isGood = hasEnded
                        break
                    }
                    started.withLock { $0.removeAll { $0 == name } }
                    if !isGood { throw .failed(RunFailure(.transient, "503")) }
                }
            }
            tasks.withLock { $0[name] = task }
            try executor.runUntilIdle()
        }

        func end(_ name: String, good: Bool = true) throws {
            ends.withLock { $0[name] }?.value = good
            try executor.runUntilIdle()
        }

        /// Cancels all requests; the executor has to run after that.
        func abandon() {
            for task in tasks.withLock({ $0.values.map(\.self) }) { task.cancel() }
            places.close()
        }

        func close() throws {
            places.close()
            try executor.runUntilIdle()
        }

        func cancel(_ name: String) throws {
            tasks.withLock { $0[name] }?.cancel()
            try executor.runUntilIdle()
        }
    }

    private func slots(total: Int = 10, perOrigin: Int) -> RequestLimiter {
        RequestLimiter(RequestLimiter.Limits(total: total, perOrigin: perOrigin))
    }

    @Test("a run whose file hangs gives its place back and names the path, until the file system answers")
    func hungFile() throws {
        let slots = slots(total: 1, perOrigin: 1)
        let run = makeRun(slots, 1, at: nil)
        #expect(slots.counts == (1, 0))
        run.places.note("/hung/a", isWaiting: true)
        run.places.note("/hung/b", isWaiting: true)
        #expect(slots.counts == (0, 0))
        #expect(run.places.hungFile == "/hung/a")
        run.places.note("/hung/a", isWaiting: false)
        #expect(run.places.hungFile == "/hung/b")
        run.places.note("/hung/b", isWaiting: false)
        #expect(run.places.hungFile == nil)
        try run.begin("next", at: nil)
        try run.end("next")
        #expect(slots.counts == (1, 0))
        try run.close()
        #expect(slots.counts == (0, 0))
    }

    @Test("the place with which a run begins is for its first request; what comes at the same time waits")
    func first() throws {
        let slots = slots(perOrigin: 1)
        let run = makeRun(slots, 1, at: Self.a)
        try run.begin("first", at: Self.a)
        try run.begin("second", at: Self.a)
        #expect(run.underWay == ["first"])
        #expect(slots.counts == (1, 1))
        try run.end("first")
        #expect(run.underWay == ["second"])
        try run.end("second")
        try run.close()
        #expect(slots.counts == (0, 0))
    }

    @Test("a place is kept while the run works on what it loaded, until it ends")
    func kept() throws {
        let slots = slots(perOrigin: 2)
        let run = makeRun(slots, 1, at: Self.a)
        try run.begin("1", at: Self.a)
        try run.begin("2", at: Self.a)
        try run.end("1")
        try run.end("2")
        #expect(slots.counts == (1, 0), "one, however many there were")
        try run.close()
        #expect(slots.counts == (0, 0))
    }

    @Test("none is kept after a request that failed, nor while the run lets time go by")
    func notKept() throws {
        let slots = slots(perOrigin: 1)
        let run = makeRun(slots, 1, at: Self.a)
        try run.begin("first", at: Self.a)
        try run.end("first", good: false)
        #expect(slots.counts == (0, 0))
        try run.begin("second", at: Self.a)
        try run.end("second")
        #expect(slots.counts == (1, 0))
        try executor.run { [slots] in
            await run.places.rest { #expect(slots.counts == (0, 0)) }
        }
        let isOver = CurrentValue(false)
        let rest = Task(executorPreference: executor) {
            await run.places.rest { for await isOver in isOver where isOver { break } }
        }
        try run.begin("third", at: Self.a)
        try run.end("third")
        #expect(slots.counts == (0, 0), "a part of it lets time go by")
        isOver.value = true
        try executor.runUntilIdle()
        _ = rest
        try run.begin("fourth", at: Self.a)
        try run.end("fourth")
        #expect(slots.counts == (1, 0))
    }

    @Test("a run of many requests, one by one or at once, is ahead of nobody")
    func turns() throws {
        for atOnce in [1, 4] {
            let slots = slots(perOrigin: 1)
            let many = makeRun(slots, 1, at: Self.a)
            for index in 0..<atOnce { try many.begin("\(index)", at: Self.a) }
            let few = makeRun(slots, 2, at: nil)
            try few.begin("few", at: Self.a)
            try many.end("0")
            // The other wishes of the first one have waited longer, as one; then it is the other's turn.
            if atOnce > 1 {
                #expect(many.underWay == ["1"])
                try many.end("1")
            } else {
                try many.begin("1", at: Self.a)
            }
            #expect(few.underWay == ["few"] && many.underWay == [])
            try few.end("few")
            try few.close()
            #expect(many.underWay.count == 1)
        }
    }

    @Test("two runs that go to each other's origin do not wait for each other, with one place each and in all")
    func crosswise() throws {
        for total in [2, 10] {
            let slots = slots(total: total, perOrigin: 1)
            let one = makeRun(slots, 1, at: Self.a)
            let two = makeRun(slots, 2, at: Self.b)
            try one.begin("list", at: Self.a)
            try two.begin("list", at: Self.b)
            try one.end("list")
            try two.end("list")
            #expect(slots.counts == (2, 0))
            try one.begin("one", at: Self.b)
            #expect(one.underWay == [])
            // The first gave its place back before it waited; then the second can go on, and by that the first.
            try two.begin("two", at: Self.a)
            #expect(two.underWay == ["two"] && one.underWay == ["one"])
            try one.end("one")
            try two.end("two")
            try one.close()
            try two.close()
            #expect(slots.counts == (0, 0))
        }
    }

    @Test("a place is not kept while another request of the run waits for one elsewhere")
    func notKeptBesideWaiting() throws {
        let slots = slots(total: 2, perOrigin: 1)
        let one = makeRun(slots, 1, at: Self.a)
        let two = makeRun(slots, 2, at: Self.b)
        try one.begin("a", at: Self.a)
        try two.begin("b", at: Self.b)
        try one.begin("b", at: Self.b)
        try two.begin("a", at: Self.a)
        #expect(slots.counts == (2, 2))
        try one.end("a")
        #expect(two.underWay == ["b", "a"])
        // Nor while another one is under way.
        try two.end("b")
        #expect(one.underWay == ["b"])
    }

    @Test("the place with which a run begins is given back if its first request goes elsewhere")
    func elsewhere() throws {
        let slots = slots(total: 1, perOrigin: 1)
        let run = makeRun(slots, 1, at: nil)
        try run.begin("a", at: Self.a)
        #expect(run.underWay == ["a"] && slots.counts == (1, 0))
        try run.end("a")
        try run.begin("command", at: nil)
        #expect(run.underWay == ["command"] && slots.counts == (1, 0))
    }

    @Test("who is cancelled waits no longer, and leaves nothing")
    func cancelled() throws {
        let slots = slots(perOrigin: 1)
        let run = makeRun(slots, 1, at: Self.a)
        try run.begin("first", at: Self.a)
        try run.begin("second", at: Self.a)
        try run.cancel("second")
        #expect(slots.counts == (1, 0))
        try run.close()
        try run.end("first")
        #expect(slots.counts == (0, 0))
        #expect(run.underWay.isEmpty)
        #expect(run.stallsTold == [])
    }

    @Test(
        "it is told when all that a run asks waits, and what for; while one of its requests is under way that is not so"
    )
    func stalled() throws {
        let slots = slots(perOrigin: 1)
        let run = makeRun(slots, 1, at: Self.a)
        let other = makeRun(slots, 2, at: Self.b)
        try other.begin("b", at: Self.b)
        try run.begin("a", at: Self.a)
        try run.begin("b", at: Self.b)
        #expect(run.stallsTold == [] && run.places.queue == nil)
        try run.end("a")
        #expect(run.stallsTold == [true])
        #expect(run.places.queue?.description == "1 request is under way at https://b.example")
        try run.begin("a again", at: Self.a)
        #expect(run.stallsTold == [true, false] && run.places.queue == nil)
        try run.end("a again")
        try other.end("b")
        try other.close()
        #expect(run.underWay == ["b"])
        #expect(run.stallsTold == [true, false, true, false])
        try run.end("b")
        try other.begin("b again", at: Self.b)
        try run.begin("last", at: Self.b)
        try run.cancel("last")
        #expect(run.stallsTold == [true, false, true, false, true, false])
    }

    @Test(
        "whatever runs do at a few origins, all of them end, no limit is passed, and nothing is left",
        arguments: 0..<150)
    func anyCourse(_ seed: UInt64) throws {
        let course = PlacesCourse(seed)
        try executor.run { await course.run() }
        course.expectAllWell()
    }

    @Test("the same on several threads", arguments: 0..<150)
    func anyCourseOnThreads(_ seed: UInt64) async {
        let course = PlacesCourse(seed)
        await course.run()
        course.expectAllWell()
    }
}

/// Several runs, and limits that change meanwhile, by the dice.
private struct PlacesCourse: Sendable {
    private let slots: RequestLimiter
    private let witness = PlacesWitness()
    private let runs: [AnyRun]
    private let changes: [(wait: Int, limits: RequestLimiter.Limits)]

    init(_ seed: UInt64) {
        var dice = Jitter(seed: seed)
        let limits = Self.limits(&dice)
        slots = RequestLimiter(limits)
        runs = (1...12).map { AnyRun(pipeline: $0, &dice) }
        changes = (0..<3).map { _ in (Int.random(in: 0...60, using: &dice), Self.limits(&dice)) }
        witness.allow([limits] + changes.map(\.limits))
    }

    private static func limits(_ dice: inout Jitter) -> RequestLimiter.Limits {
        RequestLimiter.Limits(
            total: Int.random(in: 1...4, using: &dice), perOrigin: Int.random(in: 1...3, using: &dice))
    }

    func run() async {
        await withDiscardingTaskGroup { group in
            for run in runs { group.addTask { await run.go(slots, witness) } }
            group.addTask {
                for (wait, limits) in changes {
                    for _ in 0..<wait { await Task.yield() }
                    slots.change(limits)
                }
            }
        }
    }

    func expectAllWell() {
        #expect(witness.faults == [])
        #expect(witness.requests > 0)
        #expect(slots.counts == (0, 0))
    }
}

/// Counts requests, and notes when there are too many.
private final class PlacesWitness: Sendable {
    private struct State {
        var limits = RequestLimiter.Limits(total: 1, perOrigin: 1)
        var underWay: [HTTPOrigin?: Int] = [:]
        var requests = 0
        var faults: [String] = []
    }

    private let state = Lock(State())

    /// There may be as many as any of these allows: which one holds is only known to the slots.
    func allow(_ limits: [RequestLimiter.Limits]) {
        state.withLock { state in
            for limits in limits {
                state.limits.total = max(state.limits.total, limits.total)
                state.limits.perOrigin = max(state.limits.perOrigin, limits.perOrigin)
            }
        }
    }

    var faults: [String] { state.withLock { $0.faults } }
    var requests: Int { state.withLock { $0.requests } }

    func begins(at origin: HTTPOrigin?) {
        state.withLock { state in
            state.requests += 1
            state.underWay[origin, default: 0] += 1
            let all = state.underWay.values.reduce(0, +)
            if all > state.limits.total { state.faults.append("\(all) requests at once") }
            if let origin, let count = state.underWay[origin], count > state.limits.perOrigin {
                state.faults.append("\(count) requests at once at \(origin)")
            }
        }
    }

    func ends(at origin: HTTPOrigin?) { state.withLock { $0.underWay[origin, default: 0] -= 1 } }
}

/// A run by the dice.
private struct AnyRun: Sendable {
    private enum Step: Sendable {
        /// So many requests at once: where, how long, and whether they succeed.
        case ask([(origin: HTTPOrigin?, yields: Int, isGood: Bool)])
        case work(yields: Int)
        /// So long, and beside it one request.
        case rest(yields: Int, at: HTTPOrigin?)
    }

    private static let origins = [
        HTTPOrigin(of: "https://a.example/"), HTTPOrigin(of: "https://b.example/"),
        HTTPOrigin(of: "https://c.example/"),
        nil,
    ]

    private let pipeline: UInt64
    private let first: HTTPOrigin?
    private let steps: [Step]
    /// After so long it is cancelled.
    private let patience: Int?

    init(pipeline: UInt64, _ dice: inout Jitter) {
        self.pipeline = pipeline
        func origin() -> HTTPOrigin? { Self.origins.randomElement(using: &dice) ?? nil }
        first = origin()
        steps = (0..<Int.random(in: 1...6, using: &dice)).map { _ in
            switch Int.random(in: 0..<6, using: &dice) {
            case 0: .work(yields: Int.random(in: 0...5, using: &dice))
            case 1: .rest(yields: Int.random(in: 0...9, using: &dice), at: origin())
            case 2: .ask([(origin(), Int.random(in: 0...4, using: &dice), true)])
            default:
                .ask(
                    (0..<Int.random(in: 1...6, using: &dice)).map { _ in
                        (origin(), Int.random(in: 0...4, using: &dice), Int.random(in: 0..<4, using: &dice) > 0)
                    })
            }
        }
        patience = Int.random(in: 0..<4, using: &dice) == 0 ? Int.random(in: 0...40, using: &dice) : nil
    }

    /// As the engine does it: with a place first, then what it does, and an end that may come sooner.
    func go(_ slots: RequestLimiter, _ witness: PlacesWitness) async {
        let isThere = CurrentValue(false)
        let ticket: RequestLimiter.Ticket
        switch slots.request(for: pipeline, at: first, { isThere.value = true }) {
        case .granted(let granted): ticket = granted
        case .queued(let queued):
            for await isThere in isThere where isThere { break }
            ticket = queued
        }
        let places = RunPermits(slots, for: pipeline, beginningWith: ticket, at: first)
        let interruption = CurrentValue(false)
        await withDiscardingTaskGroup { group in
            if let patience {
                group.addTask {
                    for _ in 0..<patience { await Task.yield() }
                    interruption.value = true
                }
            }
            await interruptible(by: interruption, otherwise: ()) {
                for step in steps { await take(step, places, witness) }
            }
        }
        places.close()
    }

    private func take(_ step: Step, _ places: RunPermits, _ witness: PlacesWitness) async {
        switch step {
        case .work(let yields):
            for _ in 0..<yields { await Task.yield() }
        case .rest(let yields, let origin):
            async let beside: Void = ask(at: origin, yields: 2, isGood: true, places, witness)
            await places.rest { for _ in 0..<yields { await Task.yield() } }
            await beside
        case .ask(let requests):
            await withDiscardingTaskGroup { group in
                for (origin, yields, isGood) in requests {
                    group.addTask { await ask(at: origin, yields: yields, isGood: isGood, places, witness) }
                }
            }
        }
    }

    private func ask(
        at origin: HTTPOrigin?, yields: Int, isGood: Bool, _ places: RunPermits, _ witness: PlacesWitness
    ) async {
        _ = try? await places.pass(at: origin) { () throws(FetchError) in
            witness.begins(at: origin)
            for _ in 0..<yields { await Task.yield() }
            witness.ends(at: origin)
            if !isGood { throw .failed(RunFailure(.transient, "503")) }
        }
    }
}
