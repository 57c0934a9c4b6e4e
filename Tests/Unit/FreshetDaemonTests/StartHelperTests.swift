import FreshetEventLoop
import Glibc
import Synchronization
import TestSupport
import Testing
import ThreadTestSupport

@testable import FreshetDaemon

@Suite("A helper of the start", .hangLimit)
struct StartHelperTests {
    /// Pieces of work that record which threads performed them.
    private final class Pieces: Sendable {
        let threads = Mutex<[pthread_t]>([])
        let count: Int

        init(_ count: Int) { self.count = count }

        func perform() -> Bool {
            threads.withLock { threads in
                guard threads.count < count else { return false }
                threads.append(pthread_self())
                return true
            }
        }

        /// Waits until two threads have performed a piece.
        func awaitTwoThreads() { while threads.withLock({ Set($0).count }) < 2 { sched_yield() } }
    }

    @Test("takes part in work, which has ended on both threads afterwards")
    func helps() async throws {
        try await onThread {
            let (caller, pieces) = (pthread_self(), Pieces(100))
            let ended = Atomic(0)
            StartHelper(WorkerPool(threads: 1), isFree: { true }).perform {
                let isMore = pieces.perform()
                // The caller has begun to wait when the helper has ended; no piece is left for the caller before.
                if pthread_self() == caller, pieces.threads.withLock(\.count) > 1 { pieces.awaitTwoThreads() }
                if pthread_self() != caller, !isMore { ended.add(1, ordering: .relaxed) }
                return isMore
            }
            #expect(ended.load(ordering: .relaxed) == 1)
            #expect(pieces.threads.withLock { Set($0).count == 2 && $0.count == 100 })
        }.get()
    }

    @Test("does not take part while its pool has other work")
    func busy() async throws {
        try await onThread {
            let (caller, pieces) = (pthread_self(), Pieces(100))
            StartHelper(WorkerPool(threads: 1), isFree: { false }).perform { pieces.perform() }
            #expect(pieces.threads.withLock { $0.allSatisfy { $0 == caller } && $0.count == 100 })
        }.get()
    }
}
