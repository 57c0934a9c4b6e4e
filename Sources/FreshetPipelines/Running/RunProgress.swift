import FreshetModel
internal import FreshetSignals

/// The progress of a run, updated from any thread.
final class RunProgress: Sendable {
    private struct State {
        var loaded = LoadProgress()
        var requests = 0
        /// The number of allowed requests, made or not.
        var allowed = 0
        var failures: [BranchFailure] = []
        var truncated = false
        var committed: UInt64?
        var rejected: Rejected?
        var signedComment: String?
        var concludes = false
        var mirror: String?
    }

    private let state = Lock(State())
    /// The most requests; nil: any number.
    private let allowance: Int?

    init(allowance: Int? = nil) {
        self.allowance = allowance
    }

    /// The progress for people.
    var loaded: LoadProgress { state.withLock { $0.loaded } }
    /// The number of requests made.
    var requests: Int { state.withLock { $0.requests } }
    /// The branches that failed while the run did not.
    var failures: [BranchFailure] { state.withLock { $0.failures } }

    /// Whether a set of pages was ended by the limit on pages.
    var isTruncated: Bool { state.withLock { $0.truncated } }

    /// A handler for the bytes of one request: it gets the number of bytes so far.
    func track() -> @Sendable (UInt64) -> Void {
        let counted = Lock<UInt64>(0)
        let box = Box(counted)
        return { [self] bytes in
            // After a redirect the count begins again.
            let more = box.counted.withLock { counted in
                defer { counted = bytes }
                return bytes > counted ? bytes - counted : 0
            }
            if more > 0 { state.withLock { $0.loaded.bytes += more } }
        }
    }

    /// Adds the announced size of an answer.
    func announce(_ bytes: UInt64) {
        state.withLock { state in
            let (sum, overflow) = state.loaded.announcedBytes.addingReportingOverflow(bytes)
            state.loaded.announcedBytes = overflow ? .max : sum
        }
    }

    /// A handler for the pages of one set: it gets the number of pages so far, which falls when the set is restarted.
    func trackPages() -> @Sendable (Int) -> Void {
        let box = Box(Lock<UInt64>(0))
        return { [self] count in
            let before = box.counted.withLock { counted in
                defer { counted = UInt64(count) }
                return Int(counted)
            }
            state.withLock { $0.loaded.pages += count - before }
        }
    }

    /// The number of the generation that the run committed last, complete or partial; nil: none.
    var committed: UInt64? { state.withLock { $0.committed } }

    func recordCommit(_ generation: UInt64) { state.withLock { $0.committed = generation } }

    /// The content that a check rejected.
    struct Rejected: Hashable, Sendable {
        /// The rejected candidate; nil: the content is the copy.
        var snapshot: RejectedCandidate?
        /// Whether the candidate was removed already to free space.
        var isGone = false
        /// The rejection for conditional requests of the next run; nil: the next request is unconditional.
        var known: KnownRejection?
    }

    /// The rejected content; nil: none.
    var rejected: Rejected? { state.withLock { $0.rejected } }

    /// - Parameter isKnown: whether the next run's request may be conditional.
    func recordRejected(_ rejection: KnownRejection, isKnown: Bool = true) {
        state.withLock { $0.rejected = Rejected(snapshot: rejection.snapshot, known: isKnown ? rejection : nil) }
    }

    /// The rejected candidate was removed to free space.
    func forgetRejected(_ digest: ContentDigest) {
        state.withLock { if $0.rejected?.snapshot?.digest == digest { $0.rejected?.isGone = true } }
    }

    /// The publisher's trusted comment in the verified signature.
    var signedComment: String? { state.withLock { $0.signedComment } }

    func recordSigned(_ comment: String) { state.withLock { $0.signedComment = comment } }

    /// The mirror that was asked last, for people; nil: there are no mirrors.
    var mirror: String? { state.withLock { $0.mirror } }

    func recordMirror(_ name: String) { state.withLock { $0.mirror = name } }

    /// Whether the result is being committed: until then it is not known whether the copy has expired.
    var concludes: Bool { state.withLock { $0.concludes } }

    func recordConclusion() { state.withLock { $0.concludes = true } }

    func recordTruncation() { state.withLock { $0.truncated = true } }

    /// Takes one of the requests that the budget still allows. Requests that follow from an answer, such as to the
    /// target of a redirect, are counted but need no permission.
    func allowRequest() throws(FetchError) {
        let isAllowed = state.withLock { state in
            state.allowed = max(state.allowed, state.requests) + 1
            return allowance.map { state.allowed <= $0 } ?? true
        }
        guard !isAllowed else { return }
        throw .failed(
            RunFailure(
                .budget,
                "refresh.budget had \(allowance ?? 0) requests left, and the run needs more; "
                    + "raise the budget, or fetch less"
            )
        )
    }

    func countRequest() { state.withLock { $0.requests += 1 } }

    func expect(branches: Int) { state.withLock { $0.loaded.branches += branches } }
    func endBranch() { state.withLock { $0.loaded.endedBranches += 1 } }
    func record(_ failures: [BranchFailure]) { state.withLock { $0.failures += failures } }

    /// The tree below a path is evaluated again: subtracts its branches, and drops its failures.
    func restart(below path: [String], expected: Int, ended: Int) {
        state.withLock { state in
            state.loaded.branches -= expected
            state.loaded.endedBranches -= ended
            state.failures.removeAll { $0.path.starts(with: path) }
        }
    }

    /// A lock that a closure can hold.
    private final class Box: Sendable {
        let counted: Lock<UInt64>
        init(_ counted: consuming Lock<UInt64>) { self.counted = counted }
    }
}

/// A branch that failed in a run that did not.
package struct BranchFailure: Hashable, Sendable {
    /// The keys on the path to the branch.
    package var path: [String]
    package var failure: RunFailure
    /// Whether the configured replacement is good until the next check, so that an immediate retry is useless.
    package var isAccepted: Bool

    package init(path: [String], failure: RunFailure, isAccepted: Bool = false) {
        self.path = path
        self.failure = failure
        self.isAccepted = isAccepted
    }

    /// The path of a branch for people.
    package static func text(_ path: [String]) -> String { path.joined(separator: "/") }
}
