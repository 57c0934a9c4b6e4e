import FreshetSignals
import FreshetTestKit
import TestSupport
import Testing

@testable import FreshetPipelines

@Suite("The permits of a run with several requests", .hangLimit)
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

    private func makeRun(_ requestLimiter: RequestLimiter, _ pipeline: UInt64, at origin: HTTPOrigin?) -> Run {
        let run = Run(requestLimiter, pipeline, at: origin, executor)
        runs.append(run)
        return run
    }

    /// A run with requests that end when a test says so.
    private final class Run: Sendable {
        let permits: RunPermits
        private let executor: SerialTestExecutor
        private let ends = Lock<[String: CurrentValue<Bool?>]>([:])
        private let tasks = Lock<[String: Task<Void, Never>]>([:])
        private let started = Lock<[String]>([])
        private let recorder = StallRecorder()

        init(
            _ requestLimiter: RequestLimiter, _ pipeline: UInt64, at origin: HTTPOrigin?, _ executor: SerialTestExecutor
        ) {
            self.executor = executor
            let reply = requestLimiter.request(for: pipeline, at: origin) {}
            let ticket: RequestLimiter.Ticket? = if case .granted(let ticket) = reply { ticket } else { nil }
            permits = RunPermits(requestLimiter, for: pipeline, beginningWith: ticket, at: origin) { [recorder] in
                recorder.add($0)
            }
        }

        private final class StallRecorder: Sendable {
            private let stalls = Lock<[Bool]>([])
            func add(_ isStalled: Bool) { stalls.withLock { $0.append(isStalled) } }
            var all: [Bool] { stalls.withLock { $0 } }
        }

        /// The reported stalls.
        var reportedStalls: [Bool] { recorder.all }
        var inProgress: [String] { started.withLock { $0 } }

        func begin(_ name: String, at origin: HTTPOrigin?) throws {
            let end = CurrentValue<Bool?>(nil)
            ends.withLock { $0[name] = end }
            let task = Task<Void, Never>(executorPreference: executor) { [self] in
                _ = try? await permits.pass(at: origin) { () throws(FetchError) in
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
            permits.close()
        }

        func close() throws {
            permits.close()
            try executor.runUntilIdle()
        }

        func cancel(_ name: String) throws {
            tasks.withLock { $0[name] }?.cancel()
            try executor.runUntilIdle()
        }
    }

    private func makeLimiter(total: Int = 10, perOrigin: Int) -> RequestLimiter {
        RequestLimiter(RequestLimiter.Limits(total: total, perOrigin: perOrigin))
    }

    @Test("a run whose file hangs releases its permit and shows the path, until the file system answers")
    func hungFile() throws {
        let requestLimiter = makeLimiter(total: 1, perOrigin: 1)
        let run = makeRun(requestLimiter, 1, at: nil)
        #expect(requestLimiter.counts == (1, 0))
        run.permits.recordFileWait("/hung/a", isWaiting: true)
        run.permits.recordFileWait("/hung/b", isWaiting: true)
        #expect(requestLimiter.counts == (0, 0))
        #expect(run.permits.hungFile == "/hung/a")
        run.permits.recordFileWait("/hung/a", isWaiting: false)
        #expect(run.permits.hungFile == "/hung/b")
        run.permits.recordFileWait("/hung/b", isWaiting: false)
        #expect(run.permits.hungFile == nil)
        try run.begin("next", at: nil)
        try run.end("next")
        #expect(requestLimiter.counts == (1, 0))
        try run.close()
        #expect(requestLimiter.counts == (0, 0))
    }

    @Test("the permit with which a run begins is for its first request; concurrent requests wait")
    func first() throws {
        let requestLimiter = makeLimiter(perOrigin: 1)
        let run = makeRun(requestLimiter, 1, at: Self.a)
        try run.begin("first", at: Self.a)
        try run.begin("second", at: Self.a)
        #expect(run.inProgress == ["first"])
        #expect(requestLimiter.counts == (1, 1))
        try run.end("first")
        #expect(run.inProgress == ["second"])
        try run.end("second")
        try run.close()
        #expect(requestLimiter.counts == (0, 0))
    }

    @Test("a permit is kept while the run processes its answer, until the run ends")
    func kept() throws {
        let requestLimiter = makeLimiter(perOrigin: 2)
        let run = makeRun(requestLimiter, 1, at: Self.a)
        try run.begin("1", at: Self.a)
        try run.begin("2", at: Self.a)
        try run.end("1")
        try run.end("2")
        #expect(requestLimiter.counts == (1, 0), "one, however many there were")
        try run.close()
        #expect(requestLimiter.counts == (0, 0))
    }

    @Test("no permit is kept after a failed request, or during a pause of the run")
    func notKept() throws {
        let requestLimiter = makeLimiter(perOrigin: 1)
        let run = makeRun(requestLimiter, 1, at: Self.a)
        try run.begin("first", at: Self.a)
        try run.end("first", good: false)
        #expect(requestLimiter.counts == (0, 0))
        try run.begin("second", at: Self.a)
        try run.end("second")
        #expect(requestLimiter.counts == (1, 0))
        try executor.run { [requestLimiter] in
            await run.permits.pause { #expect(requestLimiter.counts == (0, 0)) }
        }
        let isOver = CurrentValue(false)
        let pause = Task(executorPreference: executor) {
            await run.permits.pause { for await isOver in isOver where isOver { break } }
        }
        try run.begin("third", at: Self.a)
        try run.end("third")
        #expect(requestLimiter.counts == (0, 0), "a part of it lets time go by")
        isOver.value = true
        try executor.runUntilIdle()
        _ = pause
        try run.begin("fourth", at: Self.a)
        try run.end("fourth")
        #expect(requestLimiter.counts == (1, 0))
    }

    @Test("a run with many requests, sequential or concurrent, has no advantage")
    func turns() throws {
        for atOnce in [1, 4] {
            let requestLimiter = makeLimiter(perOrigin: 1)
            let many = makeRun(requestLimiter, 1, at: Self.a)
            for index in 0..<atOnce { try many.begin("\(index)", at: Self.a) }
            let few = makeRun(requestLimiter, 2, at: nil)
            try few.begin("few", at: Self.a)
            try many.end("0")
            // The other requests of the first run have waited longer, as one queue; then the other run is next.
            if atOnce > 1 {
                #expect(many.inProgress == ["1"])
                try many.end("1")
            } else {
                try many.begin("1", at: Self.a)
            }
            #expect(few.inProgress == ["few"] && many.inProgress == [])
            try few.end("few")
            try few.close()
            #expect(many.inProgress.count == 1)
        }
    }

    @Test("two runs with requests to each other's origin do not deadlock, with one permit per origin and in total")
    func crosswise() throws {
        for total in [2, 10] {
            let requestLimiter = makeLimiter(total: total, perOrigin: 1)
            let one = makeRun(requestLimiter, 1, at: Self.a)
            let two = makeRun(requestLimiter, 2, at: Self.b)
            try one.begin("list", at: Self.a)
            try two.begin("list", at: Self.b)
            try one.end("list")
            try two.end("list")
            #expect(requestLimiter.counts == (2, 0))
            try one.begin("one", at: Self.b)
            #expect(one.inProgress == [])
            // The first run released its permit before it waited; so the second one can continue, and then the first.
            try two.begin("two", at: Self.a)
            #expect(two.inProgress == ["two"] && one.inProgress == ["one"])
            try one.end("one")
            try two.end("two")
            try one.close()
            try two.close()
            #expect(requestLimiter.counts == (0, 0))
        }
    }

    @Test("a permit is not kept while another request of the run waits for another origin")
    func notKeptBesideWaiting() throws {
        let requestLimiter = makeLimiter(total: 2, perOrigin: 1)
        let one = makeRun(requestLimiter, 1, at: Self.a)
        let two = makeRun(requestLimiter, 2, at: Self.b)
        try one.begin("a", at: Self.a)
        try two.begin("b", at: Self.b)
        try one.begin("b", at: Self.b)
        try two.begin("a", at: Self.a)
        #expect(requestLimiter.counts == (2, 2))
        try one.end("a")
        #expect(two.inProgress == ["b", "a"])
        // It is not kept while another request is in progress either.
        try two.end("b")
        #expect(one.inProgress == ["b"])
    }

    @Test("the permit with which a run begins is released if its first request goes to another origin")
    func elsewhere() throws {
        let requestLimiter = makeLimiter(total: 1, perOrigin: 1)
        let run = makeRun(requestLimiter, 1, at: nil)
        try run.begin("a", at: Self.a)
        #expect(run.inProgress == ["a"] && requestLimiter.counts == (1, 0))
        try run.end("a")
        try run.begin("command", at: nil)
        #expect(run.inProgress == ["command"] && requestLimiter.counts == (1, 0))
    }

    @Test("a cancelled request waits no longer, and leaves no state")
    func cancelled() throws {
        let requestLimiter = makeLimiter(perOrigin: 1)
        let run = makeRun(requestLimiter, 1, at: Self.a)
        try run.begin("first", at: Self.a)
        try run.begin("second", at: Self.a)
        try run.cancel("second")
        #expect(requestLimiter.counts == (1, 0))
        try run.close()
        try run.end("first")
        #expect(requestLimiter.counts == (0, 0))
        #expect(run.inProgress.isEmpty)
        #expect(run.reportedStalls == [])
    }

    @Test(
        "a stall is reported when all requests of a run wait, with the reason; not while a request is in progress"
    )
    func stalled() throws {
        let requestLimiter = makeLimiter(perOrigin: 1)
        let run = makeRun(requestLimiter, 1, at: Self.a)
        let other = makeRun(requestLimiter, 2, at: Self.b)
        try other.begin("b", at: Self.b)
        try run.begin("a", at: Self.a)
        try run.begin("b", at: Self.b)
        #expect(run.reportedStalls == [] && run.permits.queue == nil)
        try run.end("a")
        #expect(run.reportedStalls == [true])
        #expect(run.permits.queue?.description == "1 request is in progress at https://b.example")
        try run.begin("a again", at: Self.a)
        #expect(run.reportedStalls == [true, false] && run.permits.queue == nil)
        try run.end("a again")
        try other.end("b")
        try other.close()
        #expect(run.inProgress == ["b"])
        #expect(run.reportedStalls == [true, false, true, false])
        try run.end("b")
        try other.begin("b again", at: Self.b)
        try run.begin("last", at: Self.b)
        try run.cancel("last")
        #expect(run.reportedStalls == [true, false, true, false, true, false])
    }

    @Test(
        "whatever runs do at a few origins, all of them end, no limit is exceeded, and no state is left",
        arguments: 0..<150)
    func anyCourse(_ seed: UInt64) throws {
        let course = PermitScenario(seed)
        try executor.run { await course.run() }
        course.expectAllWell()
    }

    @Test("the same on several threads", arguments: 0..<150)
    func anyCourseOnThreads(_ seed: UInt64) async {
        let course = PermitScenario(seed)
        await course.run()
        course.expectAllWell()
    }
}

/// Several random runs, and limits that change meanwhile.
private struct PermitScenario: Sendable {
    private let requestLimiter: RequestLimiter
    private let witness = RequestCounter()
    private let runs: [RandomRun]
    private let changes: [(wait: Int, limits: RequestLimiter.Limits)]

    init(_ seed: UInt64) {
        var dice = Jitter(seed: seed)
        let limits = Self.limits(&dice)
        requestLimiter = RequestLimiter(limits)
        runs = (1...12).map { RandomRun(pipeline: $0, &dice) }
        changes = (0..<3).map { _ in (Int.random(in: 0...60, using: &dice), Self.limits(&dice)) }
        witness.allow([limits] + changes.map(\.limits))
    }

    private static func limits(_ dice: inout Jitter) -> RequestLimiter.Limits {
        RequestLimiter.Limits(
            total: Int.random(in: 1...4, using: &dice), perOrigin: Int.random(in: 1...3, using: &dice))
    }

    func run() async {
        await withDiscardingTaskGroup { group in
            for run in runs { group.addTask { await run.go(requestLimiter, witness) } }
            group.addTask {
                for (wait, limits) in changes {
                    for _ in 0..<wait { await Task.yield() }
                    requestLimiter.change(limits)
                }
            }
        }
    }

    func expectAllWell() {
        #expect(witness.errors == [])
        #expect(witness.requests > 0)
        #expect(requestLimiter.counts == (0, 0))
    }
}

/// Counts requests, and records when there are too many.
private final class RequestCounter: Sendable {
    private struct State {
        var limits = RequestLimiter.Limits(total: 1, perOrigin: 1)
        var inProgress: [HTTPOrigin?: Int] = [:]
        var requests = 0
        var errors: [String] = []
    }

    private let state = Lock(State())

    /// The highest of these limits is allowed: only the limiter knows which of them applies.
    func allow(_ limits: [RequestLimiter.Limits]) {
        state.withLock { state in
            for limits in limits {
                state.limits.total = max(state.limits.total, limits.total)
                state.limits.perOrigin = max(state.limits.perOrigin, limits.perOrigin)
            }
        }
    }

    var errors: [String] { state.withLock { $0.errors } }
    var requests: Int { state.withLock { $0.requests } }

    func begins(at origin: HTTPOrigin?) {
        state.withLock { state in
            state.requests += 1
            state.inProgress[origin, default: 0] += 1
            let all = state.inProgress.values.reduce(0, +)
            if all > state.limits.total { state.errors.append("\(all) concurrent requests") }
            if let origin, let count = state.inProgress[origin], count > state.limits.perOrigin {
                state.errors.append("\(count) concurrent requests at \(origin)")
            }
        }
    }

    func ends(at origin: HTTPOrigin?) { state.withLock { $0.inProgress[origin, default: 0] -= 1 } }
}

/// A random run.
private struct RandomRun: Sendable {
    private enum Step: Sendable {
        /// A number of concurrent requests: where, how long, and whether they succeed.
        case ask([(origin: HTTPOrigin?, yields: Int, isGood: Bool)])
        case work(yields: Int)
        /// A pause of this length, and one request beside it.
        case pause(yields: Int, at: HTTPOrigin?)
    }

    private static let origins = [
        HTTPOrigin(of: "https://a.example/"), HTTPOrigin(of: "https://b.example/"),
        HTTPOrigin(of: "https://c.example/"),
        nil,
    ]

    private let pipeline: UInt64
    private let first: HTTPOrigin?
    private let steps: [Step]
    /// When it is cancelled.
    private let cancelsAfter: Int?

    init(pipeline: UInt64, _ dice: inout Jitter) {
        self.pipeline = pipeline
        func origin() -> HTTPOrigin? { Self.origins.randomElement(using: &dice) ?? nil }
        first = origin()
        steps = (0..<Int.random(in: 1...6, using: &dice)).map { _ in
            switch Int.random(in: 0..<6, using: &dice) {
            case 0: .work(yields: Int.random(in: 0...5, using: &dice))
            case 1: .pause(yields: Int.random(in: 0...9, using: &dice), at: origin())
            case 2: .ask([(origin(), Int.random(in: 0...4, using: &dice), true)])
            default:
                .ask(
                    (0..<Int.random(in: 1...6, using: &dice)).map { _ in
                        (origin(), Int.random(in: 0...4, using: &dice), Int.random(in: 0..<4, using: &dice) > 0)
                    })
            }
        }
        cancelsAfter = Int.random(in: 0..<4, using: &dice) == 0 ? Int.random(in: 0...40, using: &dice) : nil
    }

    /// Like the engine: it begins with a permit, makes its steps, and may be ended early.
    func go(_ requestLimiter: RequestLimiter, _ witness: RequestCounter) async {
        let isGranted = CurrentValue(false)
        let ticket: RequestLimiter.Ticket
        switch requestLimiter.request(for: pipeline, at: first, { isGranted.value = true }) {
        case .granted(let granted): ticket = granted
        case .queued(let queued):
            for await isGranted in isGranted where isGranted { break }
            ticket = queued
        }
        let permits = RunPermits(requestLimiter, for: pipeline, beginningWith: ticket, at: first)
        let interruption = OneTimeEvent()
        await withDiscardingTaskGroup { group in
            if let cancelsAfter {
                group.addTask {
                    for _ in 0..<cancelsAfter { await Task.yield() }
                    interruption.happen()
                }
            }
            await interruptible(by: interruption, otherwise: ()) {
                for step in steps { await take(step, permits, witness) }
            }
        }
        permits.close()
    }

    private func take(_ step: Step, _ permits: RunPermits, _ witness: RequestCounter) async {
        switch step {
        case .work(let yields):
            for _ in 0..<yields { await Task.yield() }
        case .pause(let yields, let origin):
            async let beside: Void = ask(at: origin, yields: 2, isGood: true, permits, witness)
            await permits.pause { for _ in 0..<yields { await Task.yield() } }
            await beside
        case .ask(let requests):
            await withDiscardingTaskGroup { group in
                for (origin, yields, isGood) in requests {
                    group.addTask { await ask(at: origin, yields: yields, isGood: isGood, permits, witness) }
                }
            }
        }
    }

    private func ask(
        at origin: HTTPOrigin?, yields: Int, isGood: Bool, _ permits: RunPermits, _ witness: RequestCounter
    ) async {
        _ = try? await permits.pass(at: origin) { () throws(FetchError) in
            witness.begins(at: origin)
            for _ in 0..<yields { await Task.yield() }
            witness.ends(at: origin)
            if !isGood { throw .failed(RunFailure(.transient, "503")) }
        }
    }
}
