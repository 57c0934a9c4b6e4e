import Synchronization

/// Reads the files of all pipelines of a load, on as many threads as call ``read()``. Each takes the next few pipelines
/// when it has read some, so a thread that comes later reads fewer.
///
///     let reading = ConcurrentReading(load)
///     // on each thread
///     if reading.read() { configuration = reading.configuration() }
package final class ConcurrentReading: Sendable {
    private struct State {
        var next = 0
        /// The number of pieces that no thread has finished.
        var unfinished: Int
        /// Whether ``read()`` has returned true.
        var isOver = false
        /// What was read, in pieces; empty where no thread has finished.
        var pieces: [[PipelineFiles]]
    }

    private let load: ConfigurationLoad
    private let state: Mutex<State>

    /// The pipelines of one piece: enough that neither the lock nor the parts that the pieces do not share matter.
    private static let pieceCount = 64

    package init(_ load: ConfigurationLoad) {
        self.load = load
        let pieces = (load.count + Self.pieceCount - 1) / Self.pieceCount
        state = Mutex(State(unfinished: pieces, pieces: Array(repeating: [], count: pieces)))
    }

    /// Reads until no pipeline is left for this thread. Blocks.
    ///
    /// - Returns: true for one thread, when all threads have finished: it may make the configuration.
    @discardableResult
    package func read() -> Bool {
        let memory = ReadingMemory()
        while let piece = claim() {
            let begin = piece * Self.pieceCount
            let read = load.pipelines(
                in: begin..<min(begin + Self.pieceCount, load.count), remembering: memory)
            state.withLock { state in
                state.pieces[piece] = read
                state.unfinished -= 1
            }
        }
        return state.withLock { state in
            guard state.unfinished == 0, !state.isOver else { return false }
            state.isOver = true
            return true
        }
    }

    /// Whether no pipeline is left for another thread.
    package var isClaimed: Bool { state.withLock { $0.next >= $0.pieces.count } }

    private func claim() -> Int? {
        state.withLock { state in
            guard state.next < state.pieces.count else { return nil }
            defer { state.next += 1 }
            return state.next
        }
    }

    /// Makes the configuration, once a call of ``read()`` has returned true; what was read is given away. Blocks.
    package func configuration() -> Configuration {
        let pieces = state.withLock { state in
            defer { state.pieces = [] }
            return state.pieces
        }
        return load.configuration(ofPieces: pieces)
    }
}
