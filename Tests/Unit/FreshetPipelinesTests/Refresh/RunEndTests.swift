import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("What the end of a run means")
struct RunEndTests {
    private let failure = RunFailure(.transient, "503")
    private let success = RunEnd.succeeded(RunSuccess(changed: true, generation: 3))

    /// The ends of a run that succeeded, that failed, and that was cancelled.
    private func ends(_ interruption: Interruption?) -> [RunEnd] {
        let results: [RunResult] = [.succeeded(changed: true, generation: 3), .failed(failure), .cancelled]
        return results.map { RunEnd($0, interruption) }
    }

    @Test("without an interruption, the result decides")
    func undisturbed() {
        #expect(ends(nil) == [success, .failed(failure), .cancelled])
    }

    @Test("a run that succeeded before its end for the deadline, the network or another signal has succeeded")
    func succeeds() {
        #expect(ends(.deadline) == [success, .late, .late])
        for interruption in [Interruption.restart, .networkLost, .pathChanged] {
            let superseded = RunEnd.superseded(by: interruption)
            #expect(ends(interruption) == [success, superseded, superseded])
        }
    }

    @Test("a run of another configuration, of other values or of a stopped pipeline has not succeeded in any case")
    func obsolete() {
        for interruption in [Interruption.configuration, .parameters] {
            #expect(ends(interruption) == Array(repeating: .superseded(by: .configuration), count: 3))
        }
        #expect(ends(.stopped) == [.stopped, .stopped, .stopped])
    }
}
