package import FreshetModel
import Synchronization

/// What becomes of changes that failed halfway: readers see content that the index does not have yet, or the reverse.
///
/// Both closures may be called from any thread, with the lock of the pipeline held, so they must not use the cache.
package struct HalfFinishedChanges: Sendable {
    /// Index and files do not agree, and the repair has failed. Each access to the pipeline tries again; the receiver
    /// has to make one later.
    package var left: @Sendable (_ pipeline: String) -> Void = { _ in }
    /// The index now has a generation that a failed change had published, and that was not reported before.
    package var repaired: @Sendable (_ pipeline: String, CurrentGeneration) -> Void = { _, _ in }

    package init() {}
}

/// The state of a pipeline that is only in memory. Its lock serializes commits and checks of one pipeline; it is taken
/// before the lock of the index.
final class PipelineEntry: Sendable {
    struct State: Sendable {
        /// Whether a commit failed between its first rename and its end: then the index must be compared with the files
        /// first.
        var isSuspect = false
        /// Whether the last change failed after readers saw its content.
        var hasFailedLate = false
        /// Whether the index got a generation that a failed change had published, and its row is still to be read for
        /// ``followed``.
        var hasFollowed = false
        /// A generation that a failed change had published, and that the index has now. Nil: there is none, or a caller
        /// reports it. When the lock is released, ``HalfFinishedChanges/repaired`` gets it.
        var followed: CurrentGeneration? {
            get { rare.followed }
            set { rare.followed = newValue }
        }
        /// The ``SharedIndex/epoch`` in which the index was last compared with the files.
        var epoch = 0
        /// The identity of a published file whose digest was wrong: the file is not read again.
        var refuted: FileIdentity? {
            get { rare.refuted }
            set { rare.refuted = newValue }
        }
        /// The identity of a published file whose digest was right, and which the index could not record: the file is
        /// not read again.
        var unrecorded: FileIdentity? {
            get { rare.unrecorded }
            set { rare.unrecorded = newValue }
        }
        /// Nil if all of it is absent: each pipeline has an entry.
        @Rarely private var rare = Rare()
        /// What is known about the copy when the lock is released; nil: it has to be read from the index.
        var checked: CheckedCopy?
        private var revisions: UInt64 = 0

        private struct Rare: RareValues {
            var followed: CurrentGeneration?
            var refuted: FileIdentity?
            var unrecorded: FileIdentity?
        }

        /// Counts changes of the copy: see ``CurrentGeneration/revision``.
        mutating func nextRevision() -> UInt64 {
            revisions += 1
            return revisions
        }

        /// Whether this is the generation of ``followed``. If it is, the caller reports it, and nobody else does.
        mutating func takeFollowed(_ number: UInt64) -> Bool {
            guard followed?.number == number else { return false }
            followed = nil
            return true
        }
    }

    /// The published copy and its validators, as the index has them; and the number of changes, which is odd during a
    /// change.
    private struct Memory: Sendable {
        var version: UInt64 = 0
        var copy: CheckedCopy?
    }

    private let pipeline: String
    private let handlers: Handlers
    private let state = Mutex(State())
    /// Held for a few instructions, also on the event loop; nothing is called with it but ``DeferredRecords``.
    private let memory = Mutex(Memory())

    /// What the entries of all pipelines share.
    final class Handlers: Sendable {
        fileprivate let changes: HalfFinishedChanges

        init(_ changes: HalfFinishedChanges) { self.changes = changes }
    }

    init(_ pipeline: String, _ handlers: Handlers) {
        self.pipeline = pipeline
        self.handlers = handlers
    }

    /// Runs `body` with the lock. Only with the lock, the copy or its row in the index changes, so what is remembered
    /// about the copy is forgotten.
    func withLock<Value, Failure: Error>(
        _ body: (inout State) throws(Failure) -> sending Value
    ) throws(Failure) -> sending Value {
        try state.withLock { (state) throws(Failure) in
            begin(&state)
            defer { end(&state) }
            return try body(&state)
        }
    }

    /// The same, if the lock is free; otherwise nil.
    func withLockIfAvailable<Value, Failure: Error>(
        _ body: (inout State) throws(Failure) -> sending Value
    ) throws(Failure) -> sending Value? {
        try state.withLockIfAvailable { (state) throws(Failure) in
            begin(&state)
            defer { end(&state) }
            return try body(&state)
        }
    }

    /// Runs `body` with the lock; the copy and its row in the index stay as they are.
    func holding<Value, Failure: Error>(
        _ body: (borrowing State) throws(Failure) -> sending Value
    ) throws(Failure) -> sending Value {
        try state.withLock { (state) throws(Failure) in try body(state) }
    }

    private func begin(_ state: inout State) {
        state.checked = nil
        memory.withLock { memory in
            memory.version += 1
            memory.copy = nil
        }
    }

    private func end(_ state: inout State) {
        memory.withLock { memory in
            memory.version += 1
            memory.copy = state.checked
        }
        state.checked = nil
        if let followed = state.followed {
            state.followed = nil
            handlers.changes.repaired(pipeline, followed)
        }
        if state.isSuspect { handlers.changes.left(pipeline) }
    }

    // MARK: The copy's memory

    /// The remembered copy; nil: it has to be read from the index.
    var checked: CheckedCopy? { memory.withLock { $0.copy } }

    /// Identifies the present state of the copy, for a caller that reads it from the index without the lock; nil during
    /// a change.
    var version: UInt64? { memory.withLock { $0.version.isMultiple(of: 2) ? $0.version : nil } }

    /// Remembers what a caller has read, unless the copy has changed since `version`.
    func remember(_ copy: CheckedCopy, since version: UInt64) {
        memory.withLock { if $0.version == version { $0.copy = copy } }
    }

    /// The validators were changed without the lock.
    func forget() {
        memory.withLock { memory in
            memory.version += 2
            memory.copy = nil
        }
    }

    /// Replaces the remembered copy and calls `record`, unless the copy has changed.
    ///
    /// - Parameter record: returns false if it did nothing; then the remembered copy stays.
    /// - Returns: false if the copy has changed, or if `record` returned false.
    func replace(_ copy: CheckedCopy, with new: CheckedCopy, _ record: () -> Bool) -> Bool {
        memory.withLock { memory in
            guard memory.copy === copy, record() else { return false }
            memory.copy = new
            return true
        }
    }
}

/// A published copy and the validators of the last check, as the index has them. Each pipeline keeps one.
final class CheckedCopy: Sendable {
    /// The name of the published file.
    let file: String
    let identity: FileIdentity
    /// The digest of the content that the validators belong to.
    let digest: ContentDigest
    /// The validators of the last check.
    let validators: Validators
    private let binding: KeptBinding
    /// The ``SharedIndex/epoch``, which counts to ``CacheLimits/damagedIndexes``.
    private let indexEpoch: Int32

    /// Nil for a copy that one status call cannot verify: one that is withdrawn, or a set of files.
    init?(_ publication: IndexedPublication, _ validators: BoundValidators, epoch: Int) {
        guard !publication.isWithdrawn, !publication.pipeline.isSet else { return nil }
        file = publication.file
        identity = publication.generation.identity
        digest = publication.checkedDigest
        binding = KeptBinding(validators.binding)
        self.validators = validators.validators
        indexEpoch = Int32(clamping: epoch)
    }

    private init(_ copy: CheckedCopy, _ validators: BoundValidators) {
        file = copy.file
        identity = copy.identity
        digest = copy.digest
        binding = KeptBinding(validators.binding)
        self.validators = validators.validators
        indexEpoch = copy.indexEpoch
    }

    /// The same copy with the validators of a later check.
    func with(_ validators: BoundValidators) -> CheckedCopy { CheckedCopy(self, validators) }

    func isOf(epoch: Int) -> Bool { indexEpoch == Int32(clamping: epoch) }

    /// Whether the validators are for requests with this binding.
    func isBound(to other: String) -> Bool { binding == KeptBinding(other) }
}
