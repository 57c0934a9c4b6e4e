import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("What a check refused, and is not kept any more")
struct RefusedGoneTests {
    @Test("is named no more; what was refused since is")
    func named() throws {
        let stage = try Stage(RefreshPolicy(every: .seconds(3600)), check: CheckRules(minBytes: 4))
        stage.origin.answers(.content("cut"))
        try stage.start()
        try stage.fire("start")
        stage.runner.keepsNotRefused("other")
        #expect(stage.status.refused?.digest == "cut")
        stage.runner.keepsNotRefused("cut")
        #expect(stage.status.refused == nil)
    }

    @Test("is told to the run that refused it, before that ends")
    func early() {
        let progress = RunProgress()
        func refuse(_ digest: String) {
            let snapshot = RejectedSnapshot(digest: digest, size: 1, refusedAt: 0, keptUntil: 1, reason: "a check")
            progress.noteRefused(
                KnownRejection(
                    place: .aside(snapshot), failure: RunFailure(.content, "a check"), validators: Validators(),
                    binding: ""))
        }
        refuse("one")
        progress.forgetRefused("other")
        #expect(progress.refused?.isGone == false)
        progress.forgetRefused("one")
        #expect(progress.refused?.isGone == true)
        refuse("one")
        #expect(progress.refused?.isGone == false)
    }
}
