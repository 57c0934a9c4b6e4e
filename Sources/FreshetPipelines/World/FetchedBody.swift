/// The body of an answer: in memory, or stored on disk because it is long.
package enum FetchedBody: Sendable {
    case bytes([UInt8])
    case kept(StoredBody)

    /// The size in bytes.
    package var size: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .kept(let kept): kept.size
        }
    }

    /// Nil: the body is stored on disk.
    package var bytes: [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .kept: nil
        }
    }

    /// Discards a stored body. A committed body is not affected.
    package func discard() async {
        if case .kept(let kept) = self { await kept.pending.discard() }
    }
}

/// A complete stored body.
package struct StoredBody: Sendable {
    package let pending: any PendingBody
    /// The size in bytes.
    package let size: Int

    package init(_ pending: any PendingBody, size: Int) {
        self.pending = pending
        self.size = size
    }
}

/// A body that is stored on disk while it is received. It ends with a commit of its store, or with ``discard()``.
package protocol PendingBody: AnyObject, Sendable {
    /// Appends bytes. The order of two concurrent calls is not defined. After an error the body is discarded.
    func append(_ bytes: [UInt8]) async throws(RunFailure)
    /// Removes the body. A body that has ended is not affected.
    func discard() async
    /// The SHA-256 of the appended bytes, computed while they were received: lower-case hexadecimal digits.
    func digest() async throws(RunFailure) -> String
    /// Reads the appended bytes in pieces. `next` is called on a thread that may be blocked.
    func reduce<Result: Sendable>(
        into initial: Result, _ next: @escaping @Sendable (inout Result, UnsafeRawBufferPointer) -> Void
    ) async throws(RunFailure) -> Result
    /// Whether the stored bytes are the appended ones, so that no other process has written to the file. It reads all
    /// of them.
    func isIntact() async throws(RunFailure) -> Bool
    /// The path of the file, for programs that read it; nil: there is no file.
    var path: String? { get }
}

extension PendingBody {
    /// All appended bytes.
    ///
    /// - Parameter size: the number of bytes, so that the array does not have to grow.
    package func content(of size: Int = 0) async throws(RunFailure) -> [UInt8] {
        try await reduce(into: []) {
            if $0.isEmpty { $0.reserveCapacity(size) }
            $0.append(contentsOf: $1)
        }
    }
}

/// Stores long bodies of one pipeline on disk, where a commit finds them.
package protocol BodyStoring: Sendable {
    /// - Parameter size: the announced number of bytes; nil: not known.
    func begin(expecting size: UInt64?) async throws(RunFailure) -> any PendingBody
}
