internal import FreshetSignals

/// How far a run has come. Told by whatever works for the run, from any thread.
final class RunProgress: Sendable {
    private struct State {
        var loaded = LoadProgress()
        var requests = 0
        /// Requests that were allowed, made yet or not.
        var allowed = 0
        var failures: [BranchFailure] = []
        var truncated = false
        var publications = 0
        var refused: Refused?
        var signedComment: String?
        var concludes = false
    }

    private let state = Lock(State())
    /// How many requests there may be; nil: any number.
    private let allowance: Int?

    init(allowance: Int? = nil) {
        self.allowance = allowance
    }

    /// What people are shown.
    var loaded: LoadProgress { state.withLock { $0.loaded } }
    /// How many requests were made.
    var requests: Int { state.withLock { $0.requests } }
    /// The branches that failed while the run did not.
    var failures: [BranchFailure] { state.withLock { $0.failures } }

    /// Somewhere there are more pages than the limit on them allows.
    var isTruncated: Bool { state.withLock { $0.truncated } }

    /// What is told of one request's bytes: so many so far.
    func track() -> @Sendable (UInt64) -> Void {
        let counted = Lock<UInt64>(0)
        let box = Box(counted)
        return { [self] bytes in
            // A redirect begins anew.
            let more = box.counted.withLock { counted in
                defer { counted = bytes }
                return bytes > counted ? bytes - counted : 0
            }
            if more > 0 { state.withLock { $0.loaded.bytes += more } }
        }
    }

    /// An answer says how many bytes it has.
    func announce(_ bytes: UInt64) {
        state.withLock { state in
            let (sum, overflow) = state.loaded.announcedBytes.addingReportingOverflow(bytes)
            state.loaded.announcedBytes = overflow ? .max : sum
        }
    }

    /// What is told of one set's pages: so many so far, and fewer than before when it is begun anew.
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

    /// How often readers were given something that was not whole yet.
    var publications: Int { state.withLock { $0.publications } }

    func notePublication() { state.withLock { $0.publications += 1 } }

    /// What a check refused.
    struct Refused: Hashable, Sendable {
        /// What is kept aside of it; nil: nothing, it is the copy.
        var snapshot: RejectedSnapshot?
        /// That has gone for room already.
        var isGone = false
        /// What the next run may ask of it; nil: nothing.
        var known: KnownRejection?
    }

    /// Nil: nothing that is there still.
    var refused: Refused? { state.withLock { $0.refused } }

    /// - Parameter isKnown: the next run may ask whether it is there still.
    func noteRefused(_ refusal: KnownRejection, isKnown: Bool = true) {
        state.withLock { $0.refused = Refused(snapshot: refusal.snapshot, known: isKnown ? refusal : nil) }
    }

    /// What it refused has gone for room already.
    func forgetRefused(_ digest: String) {
        state.withLock { if $0.refused?.snapshot?.digest == digest { $0.refused?.isGone = true } }
    }

    /// What the publisher says of the content in its signature, which is verified.
    var signedComment: String? { state.withLock { $0.signedComment } }

    func noteSigned(_ comment: String) { state.withLock { $0.signedComment = comment } }

    /// What has come of it is being committed: whether the copy is too old is not known before that is done.
    var concludes: Bool { state.withLock { $0.concludes } }

    func noteConclusion() { state.withLock { $0.concludes = true } }

    func noteTruncation() { state.withLock { $0.truncated = true } }

    /// Takes one of the requests that the budget has left. Those that an answer leads to by itself, to the target of a
    /// redirect for instance, are counted and not asked about.
    func allowRequest() throws(FetchError) {
        let isAllowed = state.withLock { state in
            state.allowed = max(state.allowed, state.requests) + 1
            return allowance.map { state.allowed <= $0 } ?? true
        }
        guard !isAllowed else { return }
        throw .failed(
            RunFailure(
                .budget,
                "refresh.budget had \(allowance ?? 0) requests left, and the run needs more; raise it, or ask for less")
        )
    }

    func countRequest() { state.withLock { $0.requests += 1 } }

    func expect(branches: Int) { state.withLock { $0.loaded.branches += branches } }
    func endBranch() { state.withLock { $0.loaded.endedBranches += 1 } }
    func note(_ failures: [BranchFailure]) { state.withLock { $0.failures += failures } }

    /// What is below a path is walked again: so many branches are to be counted anew, and their failures too.
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
    /// The keys that lead to it.
    package var path: [String]
    package var failure: RunFailure
    /// The configuration says what stands in its place, and another attempt at once would change nothing.
    package var isAccepted: Bool

    package init(path: [String], failure: RunFailure, isAccepted: Bool = false) {
        self.path = path
        self.failure = failure
        self.isAccepted = isAccepted
    }

    /// A branch for people.
    package static func text(_ path: [String]) -> String { path.joined(separator: "/") }
}
