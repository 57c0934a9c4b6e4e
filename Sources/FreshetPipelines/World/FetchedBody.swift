/// The body of an answer: in memory, or kept aside because it is long.
package enum FetchedBody: Sendable {
    case bytes([UInt8])
    case kept(StoredBody)

    /// Bytes.
    package var size: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .kept(let kept): kept.size
        }
    }

    /// Nil: it is kept aside.
    package var bytes: [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .kept: nil
        }
    }

    /// It is not wanted after all. Of one that was committed nothing is taken away.
    package func discard() async {
        if case .kept(let kept) = self { await kept.pending.discard() }
    }
}

/// A body whose bytes are all there, aside.
package struct StoredBody: Sendable {
    package let pending: any PendingBody
    /// Bytes.
    package let size: Int

    package init(_ pending: any PendingBody, size: Int) {
        self.pending = pending
        self.size = size
    }
}

/// A body that is kept aside while it comes. It ends by a commit of the store that keeps it, or by ``discard()``.
package protocol PendingBody: AnyObject, Sendable {
    /// Appends. Of two calls at the same time it is not said which comes first. After an error it is discarded.
    func append(_ bytes: [UInt8]) async throws(RunFailure)
    /// Ends it without a trace. Of one that has ended nothing is taken away.
    func discard() async
    /// The SHA-256 of what was appended, made on the way: lower-case hexadecimal digits.
    func digest() async throws(RunFailure) -> String
    /// Reads what was appended, piece by piece. `next` is called on a thread that may be blocked.
    func reduce<Result: Sendable>(
        into initial: Result, _ next: @escaping @Sendable (inout Result, UnsafeRawBufferPointer) -> Void
    ) async throws(RunFailure) -> Result
    /// Whether what can be read is what was appended: nobody else has written to it. Reads all of it.
    func isIntact() async throws(RunFailure) -> Bool
    /// The file that has it, for programs that read it; nil: it is in none.
    var path: String? { get }
}

extension PendingBody {
    /// All that was appended.
    ///
    /// - Parameter size: how many bytes that are; with it nothing is copied while the array grows.
    package func content(of size: Int = 0) async throws(RunFailure) -> [UInt8] {
        try await reduce(into: []) {
            if $0.isEmpty { $0.reserveCapacity(size) }
            $0.append(contentsOf: $1)
        }
    }
}

/// Keeps long bodies aside for one pipeline, where a commit finds them.
package protocol BodyStoring: Sendable {
    /// - Parameter size: how many bytes were announced; nil: that is not known.
    func begin(expecting size: UInt64?) async throws(RunFailure) -> any PendingBody
}
