import FreshetEventLoop
import FreshetPipelines
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("The thread pool for paths from the configuration")
struct PathPoolTests {
    let clock = ManualEngineClock()

    private func pool(threads: Int = 1, replacements: Int = 2) -> PathPool {
        var limits = PathPool.Limits()
        limits.threads = threads
        limits.replacements = replacements
        return PathPool(clock: clock, limits: limits)
    }

    /// Starts an access that hangs until the latch opens; returns when the access has begun.
    private func hang(
        _ pool: PathPool, _ path: String, until end: Latch, for caller: PathPool.Caller = PathPool.Caller()
    ) async -> Task<Bool, Never> {
        let hasBegun = Mutex(false)
        let task = Task {
            let result: Void? = try? await pool.run(path, for: caller) { () throws(FetchError) in
                hasBegun.withLock { $0 = true }
                _ = end.wait(for: testTimeout)
            }
            return result != nil
        }
        #expect(await eventually { hasBegun.withLock { $0 } })
        return task
    }

    @Test("the pool returns results and typed errors, and arms no timer afterwards")
    func results() async throws {
        let pool = pool()
        #expect(try await pool.run("/a") { () throws(FetchError) in 42 } == 42)
        await #expect(throws: FetchError.self) {
            try await pool.run("/a") { () throws(FetchError) -> Int in throw .failed(RunFailure(.local, "no")) }
        }
        #expect(await eventually { !clock.isArmed })
    }

    @Test("the thread of an access that hangs for 10 s is replaced; when the access ends, the pool has its old size")
    func replacement() async throws {
        let pool = pool()
        let end = Latch()
        let hung = await hang(pool, "/hung", until: end)
        let other = Task { try await pool.run("/other") { () throws(FetchError) in 1 } }
        clock.advance(by: .seconds(9))
        #expect(pool.threadCount == 1)
        clock.advance(by: .seconds(1))
        #expect(try await other.value == 1)
        #expect(pool.threadCount == 2)
        end.open()
        #expect(await hung.value)
        #expect(await eventually { pool.threadCount <= 1 })
        #expect(try await pool.run("/other") { () throws(FetchError) in 2 } == 2)
    }

    @Test("when all threads and replacements hang, waiting and new accesses fail with the path's name")
    func limit() async throws {
        let pool = pool(threads: 1, replacements: 2)
        let end = Latch()
        var hung: [Task<Bool, Never>] = []
        for number in 0..<3 {
            hung.append(await hang(pool, "/hung/\(number)", until: end))
            if number < 2 { clock.advance(by: .seconds(10)) }
        }
        let waiting = Task { await failure(of: pool, "/waiting") }
        #expect(await eventually { pool.accesses == 4 })
        clock.advance(by: .seconds(10))
        #expect(await waiting.value?.contains("/waiting") == true)
        #expect(await failure(of: pool, "/new")?.contains("/new") == true)
        #expect(pool.threadCount == 3)
        end.open()
        for task in hung { #expect(await task.value) }
        #expect(await eventually { await failure(of: pool, "/after") == nil })
    }

    @Test("a cancelled caller returns immediately, and the later result is discarded")
    func cancellation() async throws {
        let pool = pool()
        let end = Latch()
        let hung = await hang(pool, "/hung", until: end)
        hung.cancel()
        #expect(await hung.value == false)
        end.open()
        #expect(try await pool.run("/other") { () throws(FetchError) in 1 } == 1)
    }

    @Test("a pipeline has one access at a time; its other accesses wait without a thread, also after a cancellation")
    func onePerPipeline() async throws {
        let pool = pool(threads: 4)
        let end = Latch()
        let caller = PathPool.Caller(pipeline: 1)
        let hung = await hang(pool, "/hung", until: end, for: caller)
        hung.cancel()
        #expect(await hung.value == false)
        let second = Task { try await pool.run("/hung", for: caller) { () throws(FetchError) in 2 } }
        let third = Task { try await pool.run("/hung", for: caller) { () throws(FetchError) in 3 } }
        #expect(await eventually { pool.accesses == 3 })
        third.cancel()
        await #expect(throws: FetchError.self) { try await third.value }
        #expect(try await pool.run("/b", for: PathPool.Caller(pipeline: 2)) { () throws(FetchError) in 4 } == 4)
        #expect(pool.threadCount <= 2)
        end.open()
        #expect(try await second.value == 2)
        #expect(await eventually { pool.accesses == 0 })
    }

    @Test("the caller is notified after 1 s that the access takes long, and when it has ended")
    func notice() async throws {
        let pool = pool()
        let end = Latch()
        let notices = Mutex<[String]>([])
        let caller = PathPool.Caller(pipeline: 1) { path, isWaiting in
            notices.withLock { $0.append("\(path) \(isWaiting)") }
        }
        let hung = await hang(pool, "/hung", until: end, for: caller)
        clock.advance(by: .milliseconds(900))
        #expect(notices.withLock { $0 } == [])
        clock.advance(by: .milliseconds(100))
        #expect(notices.withLock { $0 } == ["/hung true"])
        end.open()
        #expect(await hung.value)
        #expect(notices.withLock { $0 } == ["/hung true", "/hung false"])
    }

    private func failure(of pool: PathPool, _ path: String) async -> String? {
        do {
            try await pool.run(path) { () throws(FetchError) in }
            return nil
        } catch {
            guard case .failed(let failure) = error else { return nil }
            return failure.message
        }
    }
}
