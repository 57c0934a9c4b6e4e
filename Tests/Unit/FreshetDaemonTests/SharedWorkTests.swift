import Synchronization
import TestSupport
import Testing
import ThreadTestSupport

@testable import FreshetDaemon

@Suite("Work that the event loop shares with a worker")
struct SharedWorkTests {
    @Test("has the results in the order of the items, each once", arguments: [0, 1, 63, 64, 65, 128, 1_000])
    func inOrder(count: Int) {
        let work = SharedWork(on: count) { Array($0) }
        while work.continueWork() {}
        #expect(work.takeResults() == Array(0..<count))
        #expect(!work.continueWork())
    }

    @Test("is divided between two threads, of which each takes the next items")
    func twoThreads() async throws {
        let ranges = Mutex<[Range<Int>]>([])
        let work = SharedWork(on: 10_000) { range in
            ranges.withLock { $0.append(range) }
            return range.map { $0 * 2 }
        }
        async let other = onThread { while work.continueWork() {} }
        while work.continueWork() {}
        try await other.get()
        #expect(work.takeResults() == (0..<10_000).map { $0 * 2 })
        let sorted = ranges.withLock { $0 }.sorted { $0.lowerBound < $1.lowerBound }
        #expect(sorted.flatMap(Array.init) == Array(0..<10_000))
        #expect(sorted.allSatisfy { $0.count <= DaemonContext.pipelinesPerPause })
    }
}
