import FreshetEventLoop
import FreshetHelper
import FreshetPipelines
import Glibc

/// The memory that a helper may take for one request.
struct HelperMemory {
    /// The writable memory of a jq helper before it has read a request, in bytes.
    private static let base: UInt64 = 6 << 20

    private let share: MemoryShare?
    /// Whether the share is the whole memory budget, so that a retry cannot get more.
    private let isAll: Bool
    /// Whether the helper is kept for further requests, because it has little memory.
    let isKept: Bool

    private init(_ share: MemoryShare?, isAll: Bool, isKept: Bool) {
        self.share = share
        self.isAll = isAll
        self.isKept = isKept
    }

    static var unlimited: HelperMemory { HelperMemory(nil, isAll: true, isKept: true) }
    static var small: HelperMemory { HelperMemory(.small, isAll: false, isKept: true) }

    init(_ reservation: MemoryReservation) {
        self.init(reservation.share, isAll: reservation.isAll, isKept: false)
    }

    /// The limit on the helper's writable memory, in bytes; nil if the helper's default limit applies.
    func limit(forTemplates: Bool) -> UInt64? {
        share.map { $0.helper + (forTemplates ? TemplateProgram.baseMemory : Self.base) }
    }

    /// The request with its output limited to the reserved memory.
    func bounded(_ request: HelperRequest) -> HelperRequest {
        var request = request
        if let share { request.maxOutput = min(request.maxOutput, share.output) }
        return request
    }

    /// The failure of a request whose output was too large for the memory. Nil if the output exceeded `maxOutput`,
    /// which more memory does not change.
    func excess(of request: HelperRequest, _ maxOutput: UInt64) -> RunFailure? {
        guard let share, request.maxOutput == share.output, share.output < maxOutput else { return nil }
        var failure = RunFailure(
            .content,
            "the output of \(request.name) exceeds the \(share.output >> 20) MiB that memory.max leaves for it; "
                + "raise memory.max in freshet.yaml")
        failure.lacksMemory = !isAll
        return failure
    }

    /// The failure of a request whose helper ended without a reply.
    func failure(_ exit: ChildProcess.Exit, at request: HelperRequest) -> RunFailure {
        var failure = TransformFailure.of(exit, at: request)
        switch exit {
        case .signalled(SIGXCPU), .signalled(SIGSYS): return failure
        default: break
        }
        guard let share else { return failure }
        failure = TransformFailure.outOfMemory(exit, at: request, limit: share.helper)
        failure.lacksMemory = !isAll
        return failure
    }
}

extension FetchError {
    /// Whether the request may succeed with more memory.
    var lacksMemory: Bool {
        guard case .failed(let failure) = self else { return false }
        return failure.lacksMemory
    }
}
