import FreshetEventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite("Observers of wake-ups", .hangLimit)
struct WakeUpTests {
    /// What happened, in order.
    final class Story: Sendable {
        private let lines = Mutex<[String]>([])
        func add(_ line: String) { lines.withLock { $0.append(line) } }
        var all: [String] { lines.withLock { $0 } }
    }

    @Test("run before timers and before descriptors' handlers, and jobs that they set off run before timers too")
    func order() async throws {
        try await withLoop { loop in
            let story = Story()
            let pipe = try Pipe()
            let (over, end) = AsyncStream.makeStream(of: Void.self)
            let (woken, wake) = AsyncStream.makeStream(of: Void.self)
            // It hears of the wake-up through two hops, as a pipeline does.
            let first = Task(executorPreference: loop) {
                for await _ in woken { break }
                await Task.yield()
                story.add("task")
            }
            let armed = Atomic(false)
            let observation = loop.observeWakeUps {
                guard armed.exchange(false, ordering: .relaxed) else { return false }
                story.add("observer")
                wake.yield()
                return true
            }
            let timer = LoopTimer(loop) { story.add("timer") }
            let watch = try loop.watch(pipe.reading.rawValue, for: .read) { _ in
                _ = pipe.read()
                story.add("descriptor")
                end.yield()
            }
            // The task waits by now; from here to the next turn nothing else runs on the loop.
            await Task.yield()
            pipe.write("x")
            timer.arm(at: .now)
            armed.store(true, ordering: .relaxed)
            for await _ in over { break }
            await first.value
            #expect(story.all == ["observer", "task", "timer", "descriptor"])
            observation.cancel()
            watch.cancel()
        }
    }

    @Test("that report nothing leave jobs to the next turn")
    func nothing() async throws {
        try await withLoop { loop in
            let story = Story()
            let (over, end) = AsyncStream.makeStream(of: Void.self)
            let armed = Atomic(true)
            let observation = loop.observeWakeUps {
                if armed.exchange(false, ordering: .relaxed) { loop.perform { story.add("job") } }
                return false
            }
            let timer = LoopTimer(loop) {
                story.add("timer")
                loop.perform { end.yield() }
            }
            timer.arm(at: .now)
            for await _ in over { break }
            #expect(story.all == ["timer", "job"])
            observation.cancel()
        }
    }

    @Test("a timer that becomes due only after they looked waits for their next look")
    func strictly() async throws {
        try await withLoop { loop in
            let looks = Atomic(0)
            let (heard, continuation) = AsyncStream.makeStream(of: Int.self)
            let timer = LoopTimer(loop) { continuation.yield(looks.load(ordering: .relaxed)) }
            let due = Atomic(false)
            let observation = loop.observeWakeUps {
                looks.add(1, ordering: .relaxed)
                // As if the machine slept here: the timer is overdue when the observer returns.
                if due.exchange(false, ordering: .relaxed) { timer.arm(at: .now) }
                return false
            }
            await Task.yield()
            let before = looks.load(ordering: .relaxed)
            due.store(true, ordering: .relaxed)
            try await loop.clock.sleep(for: .microseconds(100))  // a wake-up
            var iterator = heard.makeAsyncIterator()
            let seen = try #require(await iterator.next())
            #expect(seen >= before + 2)
            observation.cancel()
        }
    }

    @Test("end when cancelled, and when released")
    func end() async throws {
        try await withLoop { loop in
            let looks = Atomic(0)
            let observe: @Sendable () -> Bool = {
                looks.add(1, ordering: .relaxed)
                return false
            }
            let cancelled = loop.observeWakeUps(observe)
            cancelled.cancel()
            do { _ = loop.observeWakeUps(observe) }
            try await loop.clock.sleep(for: .milliseconds(1))
            try await loop.clock.sleep(for: .milliseconds(1))
            #expect(looks.load(ordering: .relaxed) == 0)
        }
    }

    @Test("what other threads want done is done on the loop's thread, in order")
    func perform() async throws {
        let loop = try EventLoop()
        let story = Story()
        for number in 1...3 { loop.perform { story.add("\(number) \(loop.isCurrent)") } }
        try loop.runInThread()
        await withCheckedContinuation { continuation in loop.perform { continuation.resume() } }
        #expect(story.all == ["1 true", "2 true", "3 true"])
        loop.stop()
    }

    @Test("a clock that is only read is not set")
    func clockSet() async throws {
        try await withLoop { loop in
            let heard = Atomic(0)
            let descriptor = try ClockSetDescriptor(loop) { heard.add(1, ordering: .relaxed) }
            try await loop.clock.sleep(for: .milliseconds(2))
            #expect(heard.load(ordering: .relaxed) == 0)
            withExtendedLifetime(descriptor) {}
        }
    }
}
