import FreshetEventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite("Observers of wake-ups", .hangLimit)
struct WakeUpTests {
    /// A log of events, in order.
    final class EventLog: Sendable {
        private let lines = Mutex<[String]>([])
        func add(_ line: String) { lines.withLock { $0.append(line) } }
        var all: [String] { lines.withLock { $0 } }
    }

    @Test("run before timers and before descriptors' handlers, and so do the jobs that they cause")
    func order() async throws {
        try await withLoop { loop in
            let log = EventLog()
            let pipe = try Pipe()
            let (over, end) = AsyncStream.makeStream(of: Void.self)
            let (woken, wake) = AsyncStream.makeStream(of: Void.self)
            // The task receives the wake-up through two hops, as a pipeline does.
            let first = Task(executorPreference: loop) {
                for await _ in woken { break }
                await Task.yield()
                log.add("task")
            }
            let armed = Atomic(false)
            let observation = loop.observeWakeUps {
                guard armed.exchange(false, ordering: .relaxed) else { return false }
                log.add("observer")
                wake.yield()
                return true
            }
            let timer = LoopTimer(loop) { log.add("timer") }
            let watch = try loop.watch(pipe.reading.rawValue, for: .read) { _ in
                _ = pipe.read()
                log.add("descriptor")
                end.yield()
            }
            // The task waits now; until the next iteration nothing else runs on the loop.
            await Task.yield()
            pipe.write("x")
            timer.arm(at: .now)
            armed.store(true, ordering: .relaxed)
            for await _ in over { break }
            await first.value
            #expect(log.all == ["observer", "task", "timer", "descriptor"])
            observation.cancel()
            watch.cancel()
        }
    }

    @Test("that return false leave jobs to the next iteration")
    func nothing() async throws {
        try await withLoop { loop in
            let log = EventLog()
            let (over, end) = AsyncStream.makeStream(of: Void.self)
            let armed = Atomic(true)
            let observation = loop.observeWakeUps {
                if armed.exchange(false, ordering: .relaxed) { loop.perform { log.add("job") } }
                return false
            }
            let timer = LoopTimer(loop) {
                log.add("timer")
                loop.perform { end.yield() }
            }
            timer.arm(at: .now)
            for await _ in over { break }
            #expect(log.all == ["timer", "job"])
            observation.cancel()
        }
    }

    @Test("let a timer that becomes due after they ran wait for their next call")
    func strictly() async throws {
        try await withLoop { loop in
            let calls = Atomic(0)
            let (received, continuation) = AsyncStream.makeStream(of: Int.self)
            let timer = LoopTimer(loop) { continuation.yield(calls.load(ordering: .relaxed)) }
            let due = Atomic(false)
            let observation = loop.observeWakeUps {
                calls.add(1, ordering: .relaxed)
                // As if the machine slept here: the timer is overdue when the observer returns.
                if due.exchange(false, ordering: .relaxed) { timer.arm(at: .now) }
                return false
            }
            await Task.yield()
            let before = calls.load(ordering: .relaxed)
            due.store(true, ordering: .relaxed)
            try await loop.clock.sleep(for: .microseconds(100))  // a wake-up
            var iterator = received.makeAsyncIterator()
            let seen = try #require(await iterator.next())
            #expect(seen >= before + 2)
            observation.cancel()
        }
    }

    @Test("end when cancelled, and when released")
    func end() async throws {
        try await withLoop { loop in
            let calls = Atomic(0)
            let observe: @Sendable () -> Bool = {
                calls.add(1, ordering: .relaxed)
                return false
            }
            let cancelled = loop.observeWakeUps(observe)
            cancelled.cancel()
            do { _ = loop.observeWakeUps(observe) }
            try await loop.clock.sleep(for: .milliseconds(1))
            try await loop.clock.sleep(for: .milliseconds(1))
            #expect(calls.load(ordering: .relaxed) == 0)
        }
    }

    @Test("calls from other threads run on the loop's thread, in order")
    func perform() async throws {
        let loop = try EventLoop()
        let log = EventLog()
        for number in 1...3 { loop.perform { log.add("\(number) \(loop.isCurrent)") } }
        try loop.runInThread()
        await withCheckedContinuation { continuation in loop.perform { continuation.resume() } }
        #expect(log.all == ["1 true", "2 true", "3 true"])
        loop.stop()
    }

    @Test("reading a clock does not count as setting it")
    func clockSet() async throws {
        try await withLoop { loop in
            let received = Atomic(0)
            let descriptor = try ClockSetDescriptor(loop) { received.add(1, ordering: .relaxed) }
            try await loop.clock.sleep(for: .milliseconds(2))
            #expect(received.load(ordering: .relaxed) == 0)
            withExtendedLifetime(descriptor) {}
        }
    }
}
