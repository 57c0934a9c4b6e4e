import FreshetModel
import Synchronization

/// Records that the index gets a moment later, many in one transaction: runs, and checks that confirmed the copy.
///
/// A crash loses the records that are still waiting. This loses no content: the pipeline's last check and its newest
/// runs are missing in the index. The next transaction of any pipeline takes the records along, so no later change is
/// stored before an earlier record.
///
/// Safe to call from any thread; never waits for the disk.
final class DeferredRecords: Sendable {
    enum Record: Sendable {
        case run(RunRecord)
        case check(ConfirmedCheck)

        var pipeline: String {
            switch self {
            case .run(let run): run.pipeline
            case .check(let check): check.pipeline
            }
        }
    }

    private let records = Mutex<[Record]>([])

    /// Appends a record.
    ///
    /// - Returns: how many records wait then; nil: there are ``CacheLimits/deferredRecords`` already, and this one was
    ///   not appended.
    func append(_ record: Record) -> Int? {
        records.withLock { records in
            guard records.count < CacheLimits.deferredRecords else { return nil }
            records.append(record)
            return records.count
        }
    }

    /// The number of records that wait.
    var count: Int { records.withLock(\.count) }

    /// Puts records back that could not be stored now, before all that came since they were taken.
    func putBack(_ earlier: [Record]) {
        records.withLock { $0.insert(contentsOf: earlier, at: 0) }
    }

    /// Takes all records. The caller holds the lock of the index, so that they are stored in their order.
    func take() -> [Record] {
        records.withLock { records in
            guard !records.isEmpty else { return [] }
            defer { records = [] }
            return records
        }
    }
}

/// A check in which the origin confirmed the content, which no transaction has recorded yet.
struct ConfirmedCheck: Hashable, Sendable {
    var pipeline: String
    /// The confirmed content.
    var digest: ContentDigest
    /// New validators of the origin; nil: those of the request stay.
    var validators: BoundValidators?
    var at: WallTime
    /// When the content stops being fresh, as the origin states.
    var expires: WallTime?
}

extension CacheIndex {
    /// Stores deferred records. A check of content that is not the origin's content any more is left out.
    func store(_ records: [DeferredRecords.Record]) throws(SQLiteError) {
        // The rows of pipelines with a check. The run of the check follows.
        var ids: [ExactText: Int64] = [:]
        for record in records {
            switch record {
            case .run(let run):
                let id =
                    if let known = ids[ExactText(run.pipeline)] { known } else {
                        try pipelines.ensureID(run.pipeline)
                    }
                try runs.put(run, of: id)
                try history.setCauses(of: run, of: id)
            case .check(let check):
                guard let publication = try publication(of: check.pipeline),
                    publication.checkedDigest == check.digest
                else { continue }
                let id = publication.pipeline.id
                ids[ExactText(check.pipeline)] = id
                if let validators = check.validators {
                    try self.validators.put([validators], for: check.digest, of: id)
                }
                try pipelines.recordSuccess(of: id, check.digest, at: check.at, expires: check.expires)
            }
        }
    }
}
