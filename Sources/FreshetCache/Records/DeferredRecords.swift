import FreshetModel
import Synchronization

/// Records that the index gets a moment later, many in one transaction: runs, and checks that confirmed the copy. And
/// states of hooks for which the index had no space.
///
/// A crash loses the records that are still waiting. This loses no content: the pipeline's last check and its newest
/// runs are missing in the index. The next transaction of any pipeline takes the records along, so no later change is
/// stored before an earlier record. If there is no space for runs and checks, later changes do not wait for them, but
/// they always wait for states of hooks: otherwise, after a crash, a hook could seem to have run for a later change.
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

    /// All that waits.
    struct Batch: Sendable {
        var records: [Record] = []
        var hooks: [HookKey: HookChange] = [:]

        var isEmpty: Bool { records.isEmpty && hooks.isEmpty }
        var count: Int { records.count + hooks.count }

        /// The pipeline of the first record, for a message.
        var pipeline: String { records.first?.pipeline ?? hooks.keys.map(\.pipeline).min() ?? "none" }

        /// Removes one of ``singles``.
        mutating func remove(_ single: Batch) {
            records.removeFirst(single.records.count)
            for key in single.hooks.keys { hooks[key] = nil }
        }

        /// Each record alone.
        var singles: [Batch] {
            hooks.map { Batch(hooks: [$0.key: $0.value]) } + records.map { Batch(records: [$0]) }
        }
    }

    private let waiting = Mutex(Batch())

    /// Appends a record.
    ///
    /// - Returns: how many records wait then; nil: there are ``CacheLimits/deferredRecords`` already, and this one was
    ///   not appended.
    func append(_ record: Record) -> Int? {
        waiting.withLock { waiting in
            guard waiting.records.count < CacheLimits.deferredRecords else { return nil }
            waiting.records.append(record)
            return waiting.records.count
        }
    }

    /// Adds changes of hooks, which the next access to the index stores.
    func append(_ changes: [HookKey: HookChange]) {
        waiting.withLock { $0.hooks.merge(changes) { $0.followed(by: $1) } }
    }

    /// The number of records and of states of hooks that wait.
    var count: Int { waiting.withLock { $0.records.count + $0.hooks.count } }

    /// The changes of hooks that wait.
    var hooks: [HookKey: HookChange] { waiting.withLock(\.hooks) }

    /// Puts records back that could not be stored now, before all that came since they were taken.
    func putBack(_ earlier: Batch) {
        waiting.withLock { waiting in
            waiting.records.insert(contentsOf: earlier.records, at: 0)
            waiting.hooks.merge(earlier.hooks) { $1.followed(by: $0) }
        }
    }

    /// Drops the oldest records if there are too many, because the index has had no space for a long time. So there is
    /// space for new ones, and the newest are stored later.
    func dropOldest() {
        waiting.withLock { waiting in
            guard waiting.records.count > CacheLimits.keptRecords else { return }
            waiting.records.removeFirst(waiting.records.count - CacheLimits.keptRecords)
        }
    }

    /// Takes the changes of hooks alone. The caller holds the lock of the index.
    func takeHooks() -> Batch {
        waiting.withLock { waiting in
            defer { waiting.hooks = [:] }
            return Batch(hooks: waiting.hooks)
        }
    }

    /// Takes everything. The caller holds the lock of the index, so that it is stored in its order.
    func take() -> Batch {
        waiting.withLock { waiting in
            guard !waiting.isEmpty else { return Batch() }
            defer { waiting = Batch() }
            return waiting
        }
    }
}

/// A hook of a pipeline. Identities of hooks are compared by their bytes, as in the index.
struct HookKey: Hashable, Sendable {
    var pipeline: String
    var hook: String

    static func == (one: Self, other: Self) -> Bool {
        one.pipeline == other.pipeline && one.hook.hasSameBytes(as: other.hook)
    }
}

/// A change of the record of a hook.
enum HookChange: Hashable, Sendable {
    /// The hook is new in the configuration.
    case added(StoredHookState)
    /// A run has begun or ended.
    case updated(StoredHookState)
    /// The hook is no longer configured.
    case removed

    /// This change and a later one as one change.
    func followed(by later: HookChange) -> HookChange {
        switch (self, later) {
        case (.added, .updated(let state)): .added(state)
        // The run of a hook that is no longer configured.
        case (.removed, .updated): .removed
        case (.updated, .updated), (_, .added), (_, .removed): later
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
    func store(_ batch: DeferredRecords.Batch) throws(SQLiteError) {
        try store(batch.hooks)
        try store(batch.records)
    }

    private func store(_ hooks: [HookKey: HookChange]) throws(SQLiteError) {
        for (key, change) in hooks {
            switch change {
            case .removed: try self.hooks.forget(key.hook, of: key.pipeline)
            case .added(let state):
                let id = try pipelines.ensure(key.pipeline).id
                try self.hooks.add(key.hook, notified: state.notified, of: id)
                try self.hooks.update(key.hook, to: state, of: id)
            case .updated(let state):
                try self.hooks.update(key.hook, to: state, of: try pipelines.ensure(key.pipeline).id)
            }
        }
    }

    /// A check of content that is not the origin's content any more is left out.
    private func store(_ records: [DeferredRecords.Record]) throws(SQLiteError) {
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
