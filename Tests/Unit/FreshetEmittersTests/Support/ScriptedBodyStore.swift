import FreshetEventLoop
import FreshetPipelines
import Synchronization
import TestSupport

/// A body store in memory that records the bodies for tests. It can be slow or fail.
final class ScriptedBodyStore: BodyStoring {
    enum Plan: Sendable {
        case nothing
        case refusesToBegin
        /// Fails when a body exceeds this number of bytes.
        case isFull(after: Int)
    }

    static let rejection = RunFailure(.local, "the disk is full")

    /// One body.
    final class Body: PendingBody {
        struct State {
            var bytes: [UInt8] = []
            var pieces = 0
            var isDiscarded = false
        }

        let state = Mutex(State())
        private let plan: Plan
        private let gate: Latch?
        private let written: Event
        let expected: UInt64?

        init(_ bodyStore: ScriptedBodyStore, _ expected: UInt64?) {
            (plan, gate, written) = (bodyStore.plan, bodyStore.gate, bodyStore.written)
            self.expected = expected
        }

        var bytes: [UInt8] { state.withLock { $0.bytes } }
        var isDiscarded: Bool { state.withLock { $0.isDiscarded } }

        func append(_ bytes: [UInt8]) async throws(RunFailure) {
            written.happen()
            // Blocks a thread of this test's own pool.
            _ = gate?.wait(for: testTimeout)
            let isFull = state.withLock { state in
                state.pieces += 1
                state.bytes += bytes
                return if case .isFull(let limit) = plan { state.bytes.count > limit } else { false }
            }
            if isFull { throw ScriptedBodyStore.rejection }
        }

        /// Not a real digest: these tests do not check it.
        func digest() async throws(RunFailure) -> String { "\(bytes.count)" }

        func reduce<Result: Sendable>(
            into initial: Result, _ next: @escaping @Sendable (inout Result, UnsafeRawBufferPointer) -> Void
        ) async throws(RunFailure) -> Result {
            var result = initial
            // In pieces, as from a disk.
            for start in stride(from: 0, to: bytes.count, by: 1_000) {
                bytes[start..<min(start + 1_000, bytes.count)].withUnsafeBytes { next(&result, $0) }
            }
            return result
        }

        func isIntact() async throws(RunFailure) -> Bool { true }

        var path: String? { nil }

        func discard() async { state.withLock { $0.isDiscarded = true } }
    }

    /// Occurs when a piece arrives, before it is stored.
    let written = Event()
    private let plan: Plan
    private let gate: Latch?
    private let begun = Mutex<[Body]>([])

    /// - Parameter gate: holds back every piece until it is open.
    init(_ plan: Plan = .nothing, gate: Latch? = nil) {
        self.plan = plan
        self.gate = gate
    }

    var bodies: [Body] { begun.withLock { $0 } }

    func begin(expecting size: UInt64?) async throws(RunFailure) -> any PendingBody {
        if case .refusesToBegin = plan { throw Self.rejection }
        let body = Body(self, size)
        begun.withLock { $0.append(body) }
        return body
    }
}

extension FetchResult {
    /// The stored body.
    var kept: ScriptedBodyStore.Body? {
        guard case .kept(let kept) = content?.body else { return nil }
        return kept.pending as? ScriptedBodyStore.Body
    }
}
