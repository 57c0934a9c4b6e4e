import FreshetEventLoop
import Synchronization

/// Work on many items that the event loop's thread and a worker do together: each takes the next few items when it has
/// finished some.
final class SharedWork<Result: Sendable>: Sendable {
    private struct State {
        var next = 0
        /// The results, in pieces; empty where no thread has finished.
        var pieces: [[Result]]
    }

    private let count: Int
    private let work: @Sendable (Range<Int>) -> [Result]
    private let state: Mutex<State>

    /// The items of one piece, for which the loop has no time for others.
    private static var pieceCount: Int { DaemonContext.pipelinesPerPause }

    /// - Parameter work: returns the results of some items. Two threads call it at the same time.
    init(on count: Int, _ work: @escaping @Sendable (Range<Int>) -> [Result]) {
        self.count = count
        self.work = work
        state = Mutex(State(pieces: Array(repeating: [], count: (count + Self.pieceCount - 1) / Self.pieceCount)))
    }

    /// Works on the next piece.
    ///
    /// - Returns: false if no piece is left for this thread.
    func continueWork() -> Bool {
        let piece = state.withLock { state -> Int? in
            guard state.next < state.pieces.count else { return nil }
            defer { state.next += 1 }
            return state.next
        }
        guard let piece else { return false }
        let begin = piece * Self.pieceCount
        let results = work(begin..<min(begin + Self.pieceCount, count))
        state.withLock { $0.pieces[piece] = results }
        return true
    }

    /// Takes the results of all items, in their order, when each thread has got false from ``continueWork()``.
    func takeResults() -> [Result] {
        let pieces = state.withLock { state in
            defer { state.pieces = [] }
            return state.pieces
        }
        return Array(pieces.joined())
    }
}

extension DaemonContext {
    /// The number of items for which a second thread is worth its start.
    static let worthTwoThreads = 2 * pipelinesPerPause

    /// Does work on many items on the event loop and, if there are many, on a worker thread. Other work continues
    /// meanwhile.
    ///
    /// - Parameters:
    ///   - job: the name of the work in the log.
    ///   - work: returns the results of some items. It must not block.
    /// - Returns: the results of all items, in their order.
    @DaemonActor
    func results<Result: Sendable>(
        ofWorkOn count: Int, _ job: String, _ work: @escaping @Sendable (Range<Int>) -> [Result]
    ) async -> [Result] {
        guard count >= Self.worthTwoThreads else {
            var results: [Result] = []
            for begin in stride(from: 0, to: count, by: Self.pipelinesPerPause) {
                await giveWay(before: begin, job)
                results += work(begin..<min(begin + Self.pipelinesPerPause, count))
            }
            return results
        }
        let shared = SharedWork(on: count, work)
        async let other: Void = pools.configuration.run("pipelines") { while shared.continueWork() {} }
        repeat {
            await Task.yield()
            loop.nameJob(job)
        } while shared.continueWork()
        await other
        return shared.takeResults()
    }
}
