import FreshetEventLoop
import TestSupport
import Testing

@Suite("A latch", .hangLimit)
struct LatchTests {
    @Test("that is closed blocks until the timeout")
    func closed() {
        #expect(!Latch().wait(for: .milliseconds(5)))
        #expect(!Latch().wait(for: .zero))
    }

    @Test("that is open releases waiting threads, and later ones do not wait")
    func open() async {
        let latch = Latch()
        let pool = WorkerPool(threads: 2)
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<2 { group.addTask { await pool.run { latch.wait(for: .seconds(60)) } } }
            while pool.threadCount < 2 { await Task.yield() }
            latch.open()
            for await hasPassed in group { #expect(hasPassed) }
        }
        #expect(latch.wait(for: .zero))
    }
}
