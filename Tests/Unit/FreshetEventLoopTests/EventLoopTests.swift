import FreshetEventLoop
import Glibc
import Synchronization
import Testing

@Suite("The event loop")
struct EventLoopTests {
    @Test("runs tasks, their children and calls of actors on its thread")
    func executor() async throws {
        try await withLoop { loop in
            #expect(loop.isCurrent)
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<100 {
                    group.addTask {
                        await Task.yield()
                        return loop.isCurrent
                    }
                }
                for await current in group { #expect(current) }
            }
        }
    }

    @Test("calls between functions without isolation stay in one job, also if another executor uses the loop")
    func adaptedExecutor() async throws {
        final class Adapter: TaskExecutor {
            let loop: EventLoop
            let jobs = Atomic<Int>(0)
            init(_ loop: EventLoop) { self.loop = loop }
            func enqueue(_ job: consuming ExecutorJob) {
                jobs.add(1, ordering: .relaxed)
                loop.enqueue(job, as: asUnownedTaskExecutor())
            }
        }
        @concurrent func inner() async -> Bool { true }
        @concurrent func outer() async -> Bool { await inner() }
        let loop = try EventLoop()
        try loop.runInThread()
        defer { loop.stop() }
        let adapter = Adapter(loop)
        let isOnLoop = await Task(executorPreference: adapter) {
            var isOnLoop = true
            for _ in 0..<10 { isOnLoop = await outer() && loop.isCurrent && isOnLoop }
            return isOnLoop
        }.value
        #expect(isOnLoop)
        #expect(adapter.jobs.load(ordering: .relaxed) == 1)
    }

    @Test("methods of an actor call each other in one job, also if another executor uses the loop")
    func callsWithinActor() async throws {
        final class Adapter: TaskExecutor {
            let loop: EventLoop
            init(_ loop: EventLoop) { self.loop = loop }
            func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(job, as: asUnownedTaskExecutor()) }
        }
        actor Counter {
            let loop: EventLoop
            nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
            init(loop: EventLoop) { self.loop = loop }
            func inner() async -> Bool { loop.isCurrent }
            func outer() async -> Bool {
                var isOnLoop = true
                for _ in 0..<10 { isOnLoop = await inner() && isOnLoop }
                return isOnLoop
            }
        }
        let loop = try EventLoop()
        try loop.runInThread()
        defer { loop.stop() }
        let adapter = Adapter(loop)
        loop.serve(adapter.asUnownedTaskExecutor())
        let counter = Counter(loop: loop)
        let isOnLoop = await Task(executorPreference: adapter) { await counter.outer() }.value
        #expect(isOnLoop)
        // The task begins, the actor's methods run, and the task ends.
        #expect(loop.jobCount == 3)
    }

    @Test("is an actor's executor: the actor's methods run on its thread")
    func actorExecutor() async throws {
        actor Counter {
            let loop: EventLoop
            nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
            init(loop: EventLoop) { self.loop = loop }
            func isOnLoop() -> Bool { loop.isCurrent }
        }
        let loop = try EventLoop()
        try loop.runInThread()
        defer { loop.stop() }
        #expect(await Counter(loop: loop).isOnLoop())
        #expect(!loop.isCurrent)
    }

    @Test("reports a descriptor while it is readable, until the watch is cancelled")
    func watch() async throws {
        try await withLoop { loop in
            let pipe = try Pipe()
            let (events, continuation) = AsyncStream.makeStream(of: String.self)
            let watch = try loop.watch(pipe.reading.rawValue, for: .read) { readiness in
                continuation.yield(readiness.contains(.read) ? pipe.read() : "nothing")
            }
            var iterator = events.makeAsyncIterator()
            pipe.write("one")
            #expect(await iterator.next() == "one")
            pipe.write("two")
            #expect(await iterator.next() == "two")
            watch.cancel()
            pipe.write("three")
            let turn = try Pipe()
            let marker = try loop.watch(turn.reading.rawValue, for: .read) { _ in
                _ = turn.read()
                continuation.yield("marker")
            }
            turn.write("x")
            #expect(await iterator.next() == "marker")
            marker.cancel()
        }
    }

    @Test("reports hang-up when the other end is closed, and writable when there is space")
    func hangupAndWrite() async throws {
        try await withLoop { loop in
            var sockets: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
            let mine = OwnedDescriptor(sockets[0])
            let (events, continuation) = AsyncStream.makeStream(of: Readiness.self)
            let watch = try loop.watch(mine.rawValue, for: .write) { continuation.yield($0) }
            var iterator = events.makeAsyncIterator()
            #expect(await iterator.next() == .write)
            watch.change(to: .read)
            close(sockets[1])
            var last = await iterator.next()
            while last == .write { last = await iterator.next() }
            #expect(last?.contains(.hangup) == true)
            watch.cancel()
        }
    }

    @Test("distinguishes a new descriptor from an old one with the same number")
    func reuse() async throws {
        try await withLoop { loop in
            for _ in 0..<50 {
                let first = try Pipe()
                let stale = Mutex(0)
                let watch = try loop.watch(first.reading.rawValue, for: .read) { _ in stale.withLock { $0 += 1 } }
                first.write("x")
                watch.cancel()
                #expect(stale.withLock { $0 } == 0)
            }
        }
    }

    @Test("refuses a second watch of one descriptor")
    func twice() async throws {
        let loop = try EventLoop()
        let pipe = try Pipe()
        let watch = try loop.watch(pipe.reading.rawValue, for: .read) { _ in }
        let error = try #require(throws: SystemCallError.self) {
            _ = try loop.watch(pipe.reading.rawValue, for: .read) { _ in }
        }
        #expect(error.errno == EEXIST)
        watch.cancel()
    }

    @Test("fires timers in the order of their deadlines, except disarmed or released ones")
    func timers() async throws {
        try await withLoop { loop in
            let (events, continuation) = AsyncStream.makeStream(of: Int.self)
            let now = loop.clock.now
            let timers = (1...5).map { number in LoopTimer(loop) { continuation.yield(number) } }
            for (index, timer) in timers.enumerated() { timer.arm(at: now + .milliseconds(50 - 10 * index)) }
            timers[2].disarm()
            var released: LoopTimer? = LoopTimer(loop) { continuation.yield(99) }
            released?.arm(at: now)
            released = nil
            var out: [Int] = []
            for await number in events {
                out.append(number)
                if out.count == 4 { break }
            }
            #expect(out == [5, 4, 2, 1])
        }
    }

    @Test("fires a timer that another thread arms while the loop sleeps")
    func armFromOutside() async throws {
        let loop = try EventLoop()
        try loop.runInThread()
        defer { loop.stop() }
        let (events, continuation) = AsyncStream.makeStream(of: Void.self)
        let timer = LoopTimer(loop) { continuation.yield() }
        var iterator = events.makeAsyncIterator()
        for _ in 0..<100 {
            timer.arm(at: .now)
            #expect(await iterator.next() != nil)
        }
    }

    @Test("sleeps until a deadline, and a cancelled sleep throws immediately")
    func sleep() async throws {
        try await withLoop { loop in
            let before = loop.clock.now
            try await loop.clock.sleep(for: .milliseconds(5))
            #expect(loop.clock.now >= before + .milliseconds(5))
            await withTaskGroup(of: Bool.self) { group in
                group.addTask {
                    do {
                        try await loop.clock.sleep(for: .seconds(3_600))
                        return false
                    } catch {
                        return error is CancellationError
                    }
                }
                await Task.yield()
                group.cancelAll()
                #expect(await group.next() == true)
            }
        }
    }

    @Test("stops from any thread, also when it was stopped before it ran")
    func stop() throws {
        let loop = try EventLoop()
        loop.stop()
        loop.run()
        #expect(!loop.isCurrent)
    }
}
