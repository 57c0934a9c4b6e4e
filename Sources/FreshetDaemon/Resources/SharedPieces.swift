import FreshetEventLoop
import Synchronization

/// Work in pieces that the event loop's thread adds one after another. The loop's thread and a worker work on them
/// together, and the loop's thread takes the results in the order of the pieces.
final class SharedPieces<Piece: Sendable, Result: Sendable>: Sendable {
    private struct State {
        /// The pieces that were added; nil where a thread has begun.
        var pieces: [Piece?] = []
        /// The results; nil where no thread has finished, and where the result was taken.
        var results: [Result?] = []
        /// The number of pieces that threads have begun.
        var begun = 0
        /// The number of results that were taken.
        var taken = 0
    }

    private let work: @Sendable (Piece) -> Result
    private let state = Mutex(State())

    /// - Parameter work: returns the result of a piece. Two threads call it at the same time.
    init(_ work: @escaping @Sendable (Piece) -> Result) { self.work = work }

    /// Adds a piece.
    func add(_ piece: Piece) {
        state.withLock { state in
            state.pieces.append(piece)
            state.results.append(nil)
        }
    }

    /// Works on the next piece.
    ///
    /// - Returns: false if no piece is left for this thread; more may be added.
    func continueWork() -> Bool {
        let next = state.withLock { state -> (index: Int, piece: Piece)? in
            // Each piece is begun once, so it is there.
            guard state.begun < state.pieces.count, let piece = state.pieces[state.begun] else { return nil }
            state.pieces[state.begun] = nil
            defer { state.begun += 1 }
            return (state.begun, piece)
        }
        guard let next else { return false }
        let result = work(next.piece)
        state.withLock { $0.results[next.index] = result }
        return true
    }

    /// Whether the results of all pieces were taken.
    var isOver: Bool { state.withLock { $0.taken == $0.pieces.count } }

    /// Takes the result of the next piece; nil: no thread has finished it, or there is none.
    func takeNext() -> Result? {
        state.withLock { state in
            guard state.taken < state.results.count, let result = state.results[state.taken] else { return nil }
            state.results[state.taken] = nil
            state.taken += 1
            return result
        }
    }
}

extension DaemonContext {
    /// Works on the pieces on a worker thread, each time when some were added, until `added` ends.
    nonisolated func help<Piece, Result>(
        with work: SharedPieces<Piece, Result>, whenever added: AsyncStream<Void>
    ) async {
        for await _ in added { await pools.configuration.run("pipelines") { while work.continueWork() {} } }
    }
}
