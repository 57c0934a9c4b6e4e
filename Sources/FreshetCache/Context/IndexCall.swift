/// One caller's access to the index, or its transaction, which a caller of the same group runs: see ``CallGroups``.
///
/// `@unchecked Sendable`: the caller makes and prepares the call, gives it to ``CallGroups/perform(_:_:)`` and waits there
/// until the call has ended. Only the thread that runs the group uses the call in the meantime, and with it the variables
/// of the caller that the closures refer to. The mutex of ``CallGroups`` orders both: what the caller wrote before, the
/// running thread sees, and the reverse when `perform` returns.
final class IndexCall: @unchecked Sendable {
    enum Kind: Sendable {
        /// - storesDeferred: the deferred records are stored first.
        case access(storesDeferred: Bool)
        /// - isDurable: it must survive a power cut too.
        /// - changesContent: the size of all content is updated after it.
        case transaction(isDurable: Bool, changesContent: Bool)
    }

    /// A deferred record that could not be stored, or the first of those that have to wait.
    struct Loss: Sendable {
        var pipeline: String
        var error: CacheError
    }

    typealias Body = (borrowing CacheIndex) throws(SQLiteError) -> Void

    let kind: Kind
    /// The closures; nil before and after. A call that has ended must not keep them: they refer to the caller's stack.
    private var work: (body: Body, then: () -> Void)?
    private(set) var isDone = false
    private(set) var error: SQLiteError?
    /// What the caller has to report.
    var lost: Loss?
    /// The index was found damaged and replaced, which the caller has to report.
    var replaced: RecoveryReport.Index?

    init(_ kind: Kind) { self.kind = kind }

    func prepare(_ body: @escaping Body, then: @escaping () -> Void) { work = (body, then) }

    var isTransaction: Bool {
        if case .transaction = kind { true } else { false }
    }

    var isDurable: Bool {
        if case .transaction(isDurable: true, _) = kind { true } else { false }
    }

    var changesContent: Bool {
        if case .transaction(_, changesContent: true) = kind { true } else { false }
    }

    func body(_ index: borrowing CacheIndex) throws(SQLiteError) { try work?.body(index) }

    /// The call has succeeded.
    func end() {
        work?.then()
        (isDone, work) = (true, nil)
    }

    func fail(_ error: SQLiteError) {
        (isDone, work, self.error) = (true, nil, error)
    }
}
