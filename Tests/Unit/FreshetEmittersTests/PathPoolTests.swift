import FreshetEventLoop
import FreshetPipelines
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("The pool for paths that users name")
struct PathPoolTests {
    let clock = ManualEngineClock()

    private func pool(threads: Int = 1, replacements: Int = 2) -> PathPool {
        var limits = PathPool.Limits()
        limits.threads = threads
        limits.replacements = replacements
        return PathPool(clock: clock, limits: limits)
    }

    /// An access that hangs until the latch opens; returns when it has begun.
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

    @Test("hands results and typed errors back, and arms no timer afterwards")
    func results() async throws {
        let pool = pool()
        #expect(try await pool.run("/a") { () throws(FetchError) in 42 } == 42)
        await #expect(throws: FetchError.self) {
            try await pool.run("/a") { () throws(FetchError) -> Int in throw .failed(RunFailure(.local, "no")) }
        }
        #expect(await eventually { !clock.isArmed })
    }

    @Test("an access that hangs for 10 s has its thread replaced; when it ends, the pool has its old size")
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

    @Test("when all threads and replacements hang, accesses fail with the path's name, waiting ones and new ones")
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

    @Test("a cancelled caller returns at once, and the thread's late result is dropped")
    func cancellation() async throws {
        let pool = pool()
        let end = Latch()
        let hung = await hang(pool, "/hung", until: end)
        hung.cancel()
        #expect(await hung.value == false)
        end.open()
        #expect(try await pool.run("/other") { () throws(FetchError) in 1 } == 1)
    }

    @Test("a pipeline has one access at a time: its others wait and use no thread, also after it was cancelled")
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

    @Test("tells the caller after 1 s that it waits for the path, and when that is over")
    func notice() async throws {
        let pool = pool()
        let end = Latch()
        let told = Mutex<[String]>([])
        let caller = PathPool.Caller(pipeline: 1) { path, isWaiting in
            told.withLock { $0.append("\(path) \(isWaiting)") }
        }
        let hung = await hang(pool, "/hung", until: end, for: caller)
        clock.advance(by: .milliseconds(900))
        #expect(told.withLock { $0 } == [])
        clock.advance(by: .milliseconds(100))
        #expect(told.withLock { $0 } == ["/hung true"])
        end.open()
        #expect(await hung.value)
        #expect(told.withLock { $0 } == ["/hung true", "/hung false"])
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
