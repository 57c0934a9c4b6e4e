import FreshetModel
internal import FreshetSignals

/// The records of a pipeline that are still to be written to the store, in order. The pipeline does not wait for the
/// disk.
final class RecordQueue: Sendable {
    enum Record: Sendable {
        case run(RunRecord)
        case retryAfter(WallTime?)
        case requests([RequestBurst])
        case parameters
    }

    private struct State {
        var records: [Record] = []
        var isWriting = false
    }

    private let state = Lock(State())

    /// Whether a task writes.
    var isWriting: Bool { state.withLock { $0.isWriting } }

    /// Appends a record.
    ///
    /// - Returns: whether the caller has to start a task that calls ``write(_:)``.
    func append(_ record: Record) -> Bool {
        state.withLock { state in
            state.records.append(record)
            defer { state.isWriting = true }
            return !state.isWriting
        }
    }

    /// Writes all records, also those that are appended meanwhile.
    func write(_ body: (Record) async -> Void) async {
        while let record = next() { await body(record) }
    }

    private func next() -> Record? {
        state.withLock { state in
            state.isWriting = !state.records.isEmpty
            guard state.isWriting else { return nil }
            // An empty queue takes no memory.
            defer { if state.records.isEmpty { state.records = [] } }
            return state.records.removeFirst()
        }
    }
}
