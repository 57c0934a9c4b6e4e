import FreshetModel

/// The records of a pipeline that are still to be written to the store, in order. The pipeline does not wait for the
/// disk.
///
/// It is a value under the lock of the runner, so that an idle pipeline has no object for it.
struct RecordQueue {
    enum Record: Sendable {
        case run(RunRecord)
        case retryAfter(WallTime?)
        case requests([RequestBurst])
        case parameters
    }

    private var records: [Record] = []
    /// Whether a task writes.
    private(set) var isWriting = false

    /// Appends a record.
    ///
    /// - Returns: whether the caller has to start a task that writes all records of ``next()``.
    mutating func append(_ record: Record) -> Bool {
        records.append(record)
        defer { isWriting = true }
        return !isWriting
    }

    /// Whether a record may be written before its caller goes on, because no earlier one is still to be written.
    var isEmpty: Bool { records.isEmpty && !isWriting }

    /// Takes the next record, also one that was appended meanwhile; nil: there is none, and the task ends.
    mutating func next() -> Record? {
        isWriting = !records.isEmpty
        guard isWriting else { return nil }
        // An empty queue takes no memory.
        defer { if records.isEmpty { records = [] } }
        return records.removeFirst()
    }
}
