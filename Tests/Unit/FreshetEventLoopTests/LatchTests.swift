import FreshetEventLoop
import TestSupport
import Testing

@Suite("A latch", .hangLimit)
struct LatchTests {
    @Test("that is closed lets nobody pass, for as long as they are patient")
    func closed() {
        #expect(!Latch().wait(for: .milliseconds(5)))
        #expect(!Latch().wait(for: .zero))
    }

    @Test("lets all pass once it is open, those who wait and those who come later")
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
