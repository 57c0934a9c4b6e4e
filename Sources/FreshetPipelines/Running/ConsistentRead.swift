import FreshetModel
internal import FreshetSignals

/// The results of a joined stage's sources so far. If a copy among them is replaced while another copy is read, only
/// the copies are read again: the results of the other sources are reused.
final class ConsistentRead: Sendable {
    /// A copy of another pipeline, as it was read.
    struct Copy: Sendable {
        var source: SourceDefinition
        var validators: Validators
    }

    /// The result of a source that is not a copy.
    enum Answer: Sendable {
        case value(StageEvaluator.Value)
        case failed(RunFailure)
    }

    private struct State {
        var copies: [Copy] = []
        /// The results, by position and request. Only the outermost read uses them.
        var answers: [String: Answer] = [:]
        var expectedBranches = 0
        var endedBranches = 0
    }

    /// The read of the joined stage around this one.
    private let outer: ConsistentRead?
    private let state = Lock(State())

    init(within outer: ConsistentRead?) { self.outer = outer }

    var copies: [Copy] { state.withLock { $0.copies } }

    func record(_ copy: Copy) { state.withLock { $0.copies.append(copy) } }

    /// The copies are consistent. The surrounding stage has to verify them again when it has read all its sources.
    func finish() {
        let copies = copies
        outer?.state.withLock { $0.copies += copies }
    }

    /// Begins again; returns the numbers of expected and ended branches, which will be counted again.
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
