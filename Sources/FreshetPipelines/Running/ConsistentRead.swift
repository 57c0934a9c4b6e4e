internal import FreshetSignals

/// What the sources of a joined stage gave so far. Should a copy among them be replaced while another one is read, copies
/// are read again, and only those: what others were asked for they are not asked for twice.
final class ConsistentRead: Sendable {
    /// A copy of another pipeline, as it was read.
    struct Copy: Sendable {
        var source: SourceDefinition
        var validators: Validators
    }

    /// What a source that is no copy came to.
    enum Answer: Sendable {
        case value(StageEvaluator.Value)
        case failed(RunFailure)
    }

    private struct State {
        var copies: [Copy] = []
        /// By the place and what was asked there. Of the outermost reading alone.
        var answers: [String: Answer] = [:]
        var expectedBranches = 0
        var endedBranches = 0
    }

    /// That of the joined stage around this one.
    private let outer: ConsistentRead?
    private let state = Lock(State())

    init(within outer: ConsistentRead?) { self.outer = outer }

    var copies: [Copy] { state.withLock { $0.copies } }

    func note(_ copy: Copy) { state.withLock { $0.copies.append(copy) } }

    /// These copies are of one moment: the stage around this one has to see whether they still are when it has read all.
    func finish() {
        let copies = copies
        outer?.state.withLock { $0.copies += copies }
    }

    /// Begins anew; returns how many branches were expected and ended, which are to be counted again.
    func restart() -> (expected: Int, ended: Int) {
        let counts = state.withLock { state in
            state.copies = []
            return (expected: state.expectedBranches, ended: state.endedBranches)
        }
        expect(branches: -counts.expected)
        endBranch(-counts.ended)
        return counts
    }

    func expect(branches: Int) {
        state.withLock { $0.expectedBranches += branches }
        outer?.expect(branches: branches)
    }

    func endBranch(_ count: Int = 1) {
        state.withLock { $0.endedBranches += count }
        outer?.endBranch(count)
    }

    func answer(to question: String) -> Answer? {
        outer.map { $0.answer(to: question) } ?? state.withLock { $0.answers[question] }
    }

    func remember(_ answer: Answer, to question: String) {
        guard let outer else { return state.withLock { $0.answers[question] = answer } }
        outer.remember(answer, to: question)
    }
}
