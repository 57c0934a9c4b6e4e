import Synchronization
import TestSupport
import Testing

@testable import FreshetEventLoop

@Suite("Slow jobs of the event loop")
struct SlowJobTests {
    /// Clocks that a test sets, in milliseconds.
    private final class Times: Sendable {
        private let times = Mutex<(coarse: Int64, processor: Int64)>((0, 0))

        var clocks: JobTimer.Clocks {
            JobTimer.Clocks { [self] in
                times.withLock { $0.coarse } * 1_000_000
            } processor: { [self] in
                times.withLock { $0.processor } * 1_000_000
            }
        }

        func pass(_ wall: Int64, ofProcessor processor: Int64) {
            times.withLock { $0 = ($0.coarse + wall, $0.processor + processor) }
        }
    }

    /// The jobs that an observer was called with.
    private final class Seen: Sendable {
        let jobs = Mutex<[SlowJob]>([])
    }

    @Test("a job is slow by its processor time, not by the time in which it waited for the processor")
    func processorTime() {
        let times = Times()
        var timer = JobTimer(limit: .milliseconds(20), clocks: times.clocks)
        times.pass(900, ofProcessor: 19)
        #expect(timer.jobEnded("starved") == nil)
        times.pass(20, ofProcessor: 20)
        #expect(timer.jobEnded("busy") == SlowJob(name: "busy", processorTime: .milliseconds(20)))
        #expect(timer.jobEnded("next") == nil)
    }

    @Test("a job is not charged with the time before a sleep")
    func sleep() {
        let times = Times()
        var timer = JobTimer(limit: .milliseconds(20), clocks: times.clocks)
        times.pass(15, ofProcessor: 15)
        timer.iterationBegins()
        times.pass(15, ofProcessor: 15)
        #expect(timer.jobEnded("short") == nil)
    }

    @Test("many short jobs within one tick of the coarse clock are not slow together, however late the next tick is")
    func lateTick() {
        let times = Times()
        var timer = JobTimer(limit: .milliseconds(20), clocks: times.clocks)
        for _ in 0..<1_000 {
            times.pass(0, ofProcessor: 1)
            #expect(timer.jobEnded("short") == nil)
        }
    }

    @Test("a slow job has the name of its longest part, or its own name if its unnamed part was longer")
    func parts() {
        let times = Times()
        var timer = JobTimer(limit: .milliseconds(20), clocks: times.clocks)
        times.pass(4, ofProcessor: 4)
        timer.name("question")
        times.pass(30, ofProcessor: 30)
        timer.name("answer")
        times.pass(8, ofProcessor: 8)
        #expect(timer.jobEnded("task") == SlowJob(name: "question", processorTime: .milliseconds(42)))
        times.pass(30, ofProcessor: 30)
        timer.name("answer")
        times.pass(8, ofProcessor: 8)
        #expect(timer.jobEnded("task")?.name == "task")
        // Parts of a job that was not slow do not belong to the next job.
        timer.name("question")
        #expect(timer.jobEnded("task") == nil)
        times.pass(30, ofProcessor: 30)
        #expect(timer.jobEnded("task")?.name == "task")
    }

    @Test("the loop measures calls, timers, descriptors and tasks, and passes their names to its observer")
    func loop() async throws {
        let times = Times()
        let loop = try EventLoop(jobClocks: times.clocks)
        let seen = Seen()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let slow: @Sendable () -> Void = { times.pass(25, ofProcessor: 25) }
        loop.observeSlowJobs(over: .milliseconds(20)) { job in seen.jobs.withLock { $0.append(job) } }
        // The loop begins to measure with its next iteration.
        #expect(
            await eventually {
                loop.perform(named: "first", slow)
                return seen.jobs.withLock { !$0.isEmpty }
            })
        await Task(executorPreference: loop) {}.value
        seen.jobs.withLock { $0 = [] }
        func eventuallySeen(_ name: String, _ count: Int) async {
            #expect(await eventually { seen.jobs.withLock { $0.last?.name } == name }, "\(name) is not measured")
            #expect(seen.jobs.withLock { $0.count } == count)
        }
        loop.perform(named: "quick call") { times.pass(25, ofProcessor: 5) }
        loop.perform(named: "call", slow)
        await eventuallySeen("call", 1)
        let timer = LoopTimer(loop, named: "timer of the test", slow)
        timer.arm(at: .now)
        await eventuallySeen("timer of the test", 2)
        let pipe = try Pipe()
        let watch = try loop.watch(pipe.reading.rawValue, for: .read, named: "pipe") { _ in
            _ = pipe.read()
            slow()
        }
        pipe.write("x")
        await eventuallySeen("pipe", 3)
        await Task(executorPreference: loop) { slow() }.value
        await eventuallySeen("task", 4)
        await Task(executorPreference: loop) {
            loop.nameJob("part")
            slow()
        }.value
        await eventuallySeen("part", 5)
        // On another thread there is no job to name.
        loop.nameJob("nothing")
        watch.cancel()
        withExtendedLifetime(timer) {}
    }
}
