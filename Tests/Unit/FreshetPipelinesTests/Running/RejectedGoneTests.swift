import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Rejected content that is not kept any more")
struct RejectedGoneTests {
    @Test("is not shown any more; content that was rejected later is")
    func named() throws {
        let stage = try Stage(RefreshPolicy(every: .seconds(3600)), check: CheckRules(minBytes: 4))
        stage.origin.answers(.content("cut"))
        try stage.start()
        try stage.fire("start")
        stage.runner.keepsNotRejected("other")
        #expect(stage.status.rejected?.digest == "cut")
        stage.runner.keepsNotRejected("cut")
        #expect(stage.status.rejected == nil)
    }

    @Test("is reported to the run that rejected it, before that run ends")
    func early() {
        let progress = RunProgress()
        func reject(_ digest: ContentDigest) {
            let snapshot = RejectedCandidate(digest: digest, size: 1, rejectedAt: 0, keptUntil: 1, reason: "a check")
            progress.recordRejected(
                KnownRejection(
                    location: .aside(snapshot), failure: RunFailure(.content, "a check"), validators: Validators(),
                    binding: ""))
        }
        reject("one")
        progress.forgetRejected("other")
        #expect(progress.rejected?.isGone == false)
        progress.forgetRejected("one")
        #expect(progress.rejected?.isGone == true)
        reject("one")
        #expect(progress.rejected?.isGone == false)
    }
}
