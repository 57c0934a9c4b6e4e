import Glibc
import Synchronization
import TestSupport
import Testing
import ThreadTestSupport

@testable import FreshetDaemon

@Suite("Pieces of work that the event loop adds and shares with a worker")
struct SharedPiecesTests {
    @Test("has the results in the order of the pieces, each once, while pieces are added")
    func inOrder() {
        let work = SharedPieces<Int, Int> { $0 * 2 }
        #expect(!work.continueWork())
        #expect(work.takeNext() == nil)
        #expect(work.isOver)
        var results: [Int] = []
        for piece in 0..<10 {
            work.add(piece)
            guard piece.isMultiple(of: 3) else { continue }
            while work.continueWork() {}
            while let result = work.takeNext() { results.append(result) }
        }
        #expect(results == (0..<10).map { $0 * 2 })
        #expect(work.isOver)
    }

    @Test("gives a result only when those of all earlier pieces were given")
    func earlierFirst() async throws {
        let started = Mutex(0)
        let finish = Mutex(false)
        let work = SharedPieces<Int, Int> { piece in
            started.withLock { $0 += 1 }
            // The first piece takes until the second one is finished.
            if piece == 0 { while !finish.withLock({ $0 }) { sched_yield() } }
            return piece
        }
        work.add(0)
        work.add(1)
        async let other = onThread { while work.continueWork() {} }
        while started.withLock({ $0 }) == 0 { await Task.yield() }
        while work.continueWork() {}
        #expect(work.takeNext() == nil)
        #expect(!work.isOver)
        finish.withLock { $0 = true }
        try await other.get()
        #expect(work.takeNext() == 0)
        #expect(work.takeNext() == 1)
        #expect(work.isOver)
    }

    @Test("is divided between two threads, each piece once")
    func twoThreads() async throws {
        let work = SharedPieces<Int, Int> { $0 + 1 }
        let isOver = Mutex(false)
        async let other = onThread {
            while !isOver.withLock({ $0 }) { while work.continueWork() {} }
        }
        var results: [Int] = []
        for piece in 0..<10_000 {
            work.add(piece)
            if let result = work.takeNext() { results.append(result) }
        }
        while !work.isOver {
            if let result = work.takeNext() { results.append(result) } else { _ = work.continueWork() }
        }
        isOver.withLock { $0 = true }
        try await other.get()
        #expect(results == Array(1...10_000))
    }
}
