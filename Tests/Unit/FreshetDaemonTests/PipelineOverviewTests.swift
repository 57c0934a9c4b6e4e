import FreshetControl
import FreshetModel
import TestSupport
import Testing

@testable import FreshetDaemon
@testable import FreshetPipelines

@Suite("The overview of all pipelines")
@DaemonActor
struct PipelineOverviewTests {
    /// The pipelines that the overview looks at.
    @DaemonActor
    private final class Pipelines {
        var entries: [String: PipelineOverview.Entry] = [:]
        let overview = PipelineOverview()

        init() { overview.begin { [weak self] in self?.entries[$0] } }

        func set(_ name: String, _ entry: PipelineOverview.Entry?) {
            entries[name] = entry
            overview.mayHaveChanged(name)
        }
    }

    @Test("looks only at the pipelines that may have changed, however often it is read")
    func work() async {
        let pipelines = Pipelines()
        for number in 0..<1000 { pipelines.set("p\(number)", PipelineOverview.Entry(state: .loaded)) }
        await pipelines.overview.update()
        #expect(pipelines.overview.looks == 1000)
        for _ in 0..<10 { await pipelines.overview.update() }
        #expect(pipelines.overview.looks == 1000)
        pipelines.set("p7", PipelineOverview.Entry(state: .loading))
        pipelines.set("p7", PipelineOverview.Entry(state: .failed))
        await pipelines.overview.update()
        #expect(pipelines.overview.looks == 1001)
        #expect(pipelines.overview.counts.loaded == 999)
        #expect(pipelines.overview.counts.loading == 0)
        #expect(pipelines.overview.counts.failed == 1)
        #expect(pipelines.overview.counts.total == 1000)
        #expect(pipelines.overview.names(in: [.failed, .held]) == ["p7"])
        #expect(pipelines.overview.looks == 1001)
    }

    @Test("forgets what it said of a pipeline that changes, and of one that ends")
    func changes() async {
        let pipelines = Pipelines()
        let run = PlannedRun(at: .now.advanced(by: .seconds(60)), reason: .timer)
        let retry = PlannedRun(at: .now.advanced(by: .seconds(10)), reason: .retry)
        let failure = PipelineOverview.Failure(reason: "secret", publicReason: "failed", since: 1)
        pipelines.set("a", PipelineOverview.Entry(state: .failed, failure: failure, isExpired: true, next: retry))
        pipelines.set("b", PipelineOverview.Entry(state: .idle, isWithdrawn: true, next: run))
        let overview = pipelines.overview
        overview.updateAtOnce()
        #expect(overview.failures == ["a": failure])
        #expect(overview.expired == ["a"])
        #expect(overview.withdrawn == ["b"])
        #expect(overview.next()?.pipeline == "a")
        #expect(overview.next(for: .timer)?.pipeline == "b")
        pipelines.set("a", PipelineOverview.Entry(state: .loaded))
        pipelines.set("b", nil)
        overview.updateAtOnce()
        #expect(overview.failures.isEmpty && overview.expired.isEmpty && overview.withdrawn.isEmpty)
        #expect(overview.next() == nil)
        #expect(overview.counts == PipelineCounts([.loaded]))
    }
}
