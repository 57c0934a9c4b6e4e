import FreshetEventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

@Suite("A shared flush")
struct SharedFlushTests {

    @Test("calls during a flush share the next one, which includes the changes of all of them")
    func shared() throws {
        let bed = Bed()
        try bed.holdFirst(with: 5)
        bed.gate.open()
        bed.awaitAnswers(6)
        #expect(bed.flushed.withLock { $0 } == [[0], [0, 1, 2, 3, 4, 5]])
        #expect(bed.answers.withLock { $0 }.allSatisfy { $0.error == nil })
    }

    @Test("an error is thrown to all callers that shared the flush, and to no other caller")
    func failing() throws {
        let bed = Bed(failing: 2)
        try bed.holdFirst(with: 3)
        bed.gate.open()
        bed.awaitAnswers(4)
        let answers = bed.answers.withLock { $0 }
        #expect(answers.filter { $0.error == nil }.map(\.caller) == [0])
        #expect(answers.filter { $0.error != nil }.map(\.caller).sorted() == [1, 2, 3])
        bed.call(4)
        bed.awaitAnswers(5)
        #expect(bed.answers.withLock { $0 }.last?.error == nil)
        #expect(bed.flushed.withLock { $0.count } == 3)
    }

    @Test(
        "a caller whose change came before a failed flush gets its error although the next flush succeeds")
    func before() throws {
        let flush = SharedFlush()
        let change = flush.failures
        let broken = FreshetCache.SystemCallError(call: "fsync", path: "/x", errno: 5)
        #expect(throws: FreshetCache.SystemCallError.self) {
            try flush.perform(since: change) { () throws(FreshetCache.SystemCallError) in throw broken }
        }
        #expect(throws: FreshetCache.SystemCallError.self) {
            try flush.perform(since: change) { () throws(FreshetCache.SystemCallError) in }
        }
        try flush.perform(since: flush.failures) { () throws(FreshetCache.SystemCallError) in }
        // A missing descriptor concerns only the caller itself.
        let none = FreshetCache.SystemCallError(call: "open", path: "/x", errno: 24)
        let later = flush.failures
        #expect(throws: FreshetCache.SystemCallError.self) {
            try flush.perform(since: later) { () throws(FreshetCache.SystemCallError) in throw none }
        }
        try flush.perform(since: later) { () throws(FreshetCache.SystemCallError) in }
    }

    @Test("each of many threads returns after a flush that began after its change")
    func many() throws {
        let bed = Bed()
        bed.gate.open()
        for caller in 0..<500 { bed.call(caller) }
        bed.awaitAnswers(500)
        #expect(bed.answers.withLock { $0 }.allSatisfy { $0.wasFlushed })
        #expect(bed.flushed.withLock { $0.count } <= 500)
    }

    /// Callers on separate threads, each of which makes a change and then has it flushed.
    private final class Bed: Sendable {
        struct Answer {
            var caller: Int
            var error: FreshetCache.SystemCallError?
            var wasFlushed: Bool
        }

        let gate = Latch()
        /// The changes that each flush included when it began.
        let flushed = Mutex<[[Int]]>([])
        let answers = Mutex<[Answer]>([])
        private let changes = Mutex<[Int]>([])
        private let began = Latch()
        private let flush = SharedFlush()
        private let pool = WorkerPool(threads: 16)
        private let failing: Int?

        /// - Parameter failing: the number of the flush that fails.
        init(failing: Int? = nil) { self.failing = failing }

        func call(_ caller: Int) {
            pool.perform("flush") { [self] in
                changes.withLock { $0.append(caller) }
                var failure: FreshetCache.SystemCallError?
                do throws(FreshetCache.SystemCallError) {
                    try flush.perform { () throws(FreshetCache.SystemCallError) in
                        let found = changes.withLock { $0.sorted() }
                        let number = flushed.withLock { flushed in
                            flushed.append(found)
                            return flushed.count
                        }
                        began.open()
                        _ = gate.wait(for: testTimeout)
                        if number == failing { throw FreshetCache.SystemCallError(call: "fsync", path: "/x", errno: 5) }
                    }
                } catch {
                    failure = error
                }
                let wasFlushed = flushed.withLock { $0.contains { $0.contains(caller) } }
                answers.withLock { $0.append(Answer(caller: caller, error: failure, wasFlushed: wasFlushed)) }
            }
        }

        /// The first caller's flush is in progress, and this many callers wait.
        func holdFirst(with others: Int) throws {
            call(0)
            try #require(began.wait(for: testTimeout))
            for caller in 1...others { call(caller) }
            try #require(eventually { flush.waiting == others })
        }

        func awaitAnswers(_ count: Int) {
            #expect(eventually { answers.withLock { $0.count } == count })
        }
    }
}
