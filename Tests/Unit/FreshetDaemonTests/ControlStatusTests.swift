import FreshetCache
import FreshetControl
import FreshetModel
import Glibc
import Testing
import WorldTestSupport

@testable import FreshetDaemon
@testable import FreshetPipelines

@Suite("The engine's values on the control interface")
struct ControlStatusTests {
    private let definition = PipelineDefinition(
        name: "news", description: "News",
        source: .http(HTTPSource(url: "https://user:secret@example.com/news?key=secret", host: "example.com")),
        refresh: RefreshPolicy(), cache: CacheRules(file: "news"))
    private let now = BootInstant.now

    private func status(_ activity: PipelineActivity) -> FreshetPipelines.PipelineStatus {
        FreshetPipelines.PipelineStatus(name: "news", activity: activity, lastCauses: [])
    }

    private func shown(_ status: FreshetPipelines.PipelineStatus) -> FreshetControl.PipelineStatus {
        let shown = FreshetControl.PipelineStatus(status, of: definition, path: "via 192.0.2.1")
        // The summary has to show the same.
        #expect(PipelineSummary(status, hookFails: false, mayRead: true) == PipelineSummary(shown))
        return shown
    }

    @Test("each activity becomes the state of the same name")
    func states() {
        let failure = RunFailure(.transient, "503")
        let activities: [PipelineActivity] = [
            .idle, .waiting(Wait(.network)), .loading(LoadProgress(bytes: 5)), .loaded,
            .failed(failure, since: now, attempts: 3), .held,
        ]
        #expect(activities.map { shown(status($0)).state } == [.idle, .waiting, .loading, .loaded, .failed, .held])
        #expect(activities.map { shown(status($0)).loadedBytes } == [nil, nil, 5, nil, nil, nil])
    }

    @Test("the status shows pages while they are loaded, and that a copy is truncated")
    func pages() {
        #expect(shown(status(.loading(LoadProgress(bytes: 5)))).loadedPages == nil)
        #expect(shown(status(.loading(LoadProgress(bytes: 5, pages: 2)))).loadedPages == 2)
        var status = status(.loaded)
        for truncated in [false, true] {
            status.generation = CurrentGeneration(
                number: 1, size: 1, digest: "", committedAt: 0, path: "/x", truncated: truncated)
            #expect(shown(status).generation?.truncated == (truncated ? true : nil))
        }
    }

    @Test("a failure is shown until a run succeeds, also while the next attempt waits or runs")
    func failing() {
        #expect(shown(status(.loaded)).failure == nil)
        let failure = RunFailure(.transient, "503")
        for activity in [
            PipelineActivity.failed(failure, since: now, attempts: 3), .loading(LoadProgress()),
            .waiting(Wait(.permit)),
            .held,
        ] {
            var status = status(activity)
            status.failing = OngoingFailure(failure: failure, since: now, attempts: 3)
            #expect(shown(status).failure?.message == "503")
            #expect(shown(status).failure?.attempts == 3)
        }
    }

    @Test("each reason to wait has a name")
    func waiting() {
        let words: [(Wait.Reason, WaitingReason)] = [
            (.network, .network), (.quiet, .quiet), (.interval, .quiet), (.splay, .quiet), (.backoff, .backoff),
            (.retryAfter, .backoff), (.permit, .permit), (.memory, .memory), (.sleep, .sleep),
            (.metered, .metered), (.power, .power),
        ]
        for (reason, word) in words {
            var status = status(.loaded)
            status.waitsFor = Wait(reason, until: now)
            #expect(shown(status).waitingFor == word)
            #expect(shown(status).waitingUntil != nil)
        }
        #expect(shown(status(.loaded)).waitingFor == nil)
    }

    @Test("the status shows the freshness of the copy, and its expiry by the origin and by max-age")
    func freshness() {
        let words: [(FreshetPipelines.Freshness, FreshetControl.Freshness)] = [
            (.fresh, .fresh), (.stale, .stale), (.expired, .expired),
        ]
        for (freshness, word) in words {
            var status = status(.loaded)
            status.freshness = freshness
            #expect(shown(status).freshness == word)
            #expect(shown(status).expires == nil)
            #expect(shown(status).originExpires == nil)
        }
        var status = status(.loaded)
        status.originExpires = now
        status.expires = now.advanced(by: .seconds(60))
        let (origin, own) = (shown(status).originExpires ?? 0, shown(status).expires ?? 0)
        #expect((59_000_000...61_000_000).contains(own - origin))
    }

    @Test("the status shows no secret of a source")
    func source() {
        let text = shown(status(.loaded)).source
        #expect(text.contains("example.com/news"))
        #expect(!text.contains("secret"))
        #expect(SourceDefinition.command(["/bin/date", "-u"]).text == "/bin/date -u")
        #expect(SourceDefinition.file("/etc/hosts").text == "/etc/hosts")
    }

    @Test("the last run is the run in progress, or otherwise the run that ended last")
    func runs() {
        var status = status(.loaded)
        status.lastRun = summary(.changed, run: 6, at: now)
        let ended = shown(status).lastRun
        #expect(ended?.number == 6)
        #expect(ended?.outcome == .changed)
        #expect(ended?.durationUSec == 1_500_000)
        #expect(ended?.generation == 3)
        status.run = RunOrder(run: 7, reason: .signals, causes: [], started: now, epoch: 1)
        #expect(shown(status).lastRun?.number == 7)
        #expect(shown(status).lastRun?.outcome == nil)
    }

    @Test("a cause has its times at one reading of the clocks: no first time is after the last")
    func causeTimes() {
        for _ in 0..<2_000 {
            let one = CauseStatus(RunCause("timer", first: now))
            guard one.first == one.last else {
                Issue.record("\(one.first) and \(one.last)")
                return
            }
        }
        let two = CauseStatus(RunCause("network", count: 2, first: now, last: now + .milliseconds(20)))
        #expect(two.last - two.first == 20_000)
    }

    @Test("all outcomes and freshness values have the same names in the engine and on the interface")
    func names() {
        for outcome in [FreshetModel.RunOutcome.changed, .unchanged, .failed, .superseded, .cancelled] {
            #expect(RunStatus(summary(outcome, at: now)).outcome?.rawValue == outcome.rawValue)
        }
        for freshness in [FreshetPipelines.Freshness.fresh, .stale] {
            #expect(FreshetControl.Freshness(freshness).rawValue == freshness.rawValue)
        }
        for (reason, text) in [(PlannedRun.Reason.timer, "timer"), (.retry, "retry"), (.signals, "signals")] {
            #expect(NextRun(PlannedRun(at: now, reason: reason)).reason == text)
        }
    }

    @Test("numbers that do not fit become the largest number that fits")
    func clamps() {
        let generation = CurrentGeneration(number: .max, size: .max, digest: "", committedAt: 0, path: "")
        #expect(GenerationStatus(generation).number == .max)
        #expect(GenerationStatus(generation).size == .max)
    }
}

@Suite("The wall clock")
struct WallClockTests {
    @Test("an instant of the boot clock becomes the wall-clock time with the same distance from now")
    func instants() {
        // Between two readings, so that the test does not depend on its duration.
        let before = WallClock.now
        let hour = WallClock.microseconds(at: .now + .seconds(3600)) - 3_600_000_000
        let past = WallClock.microseconds(at: .now - .seconds(3600)) + 3_600_000_000
        let after = WallClock.now
        // Each conversion reads two clocks, one after the other, and rounds.
        let slack = after - before + 2
        #expect((before - slack...after + slack).contains(hour))
        #expect((before - slack...after + slack).contains(past))
    }

    @Test("microseconds are rounded toward zero, and an instant that does not fit becomes the last one that fits")
    func microseconds() {
        #expect(Duration.nanoseconds(1_999).microseconds == 1)
        #expect(Duration.nanoseconds(-1_999).microseconds == -1)
        #expect(Duration.seconds(2).microseconds == 2_000_000)
        #expect(Duration.seconds(Int64.max).microseconds == .max)
        #expect(Duration.seconds(Int64.min).microseconds == .min)
    }

    @Test("a mirror in the history of a damaged index is shown without secrets, and not at all if it is empty")
    func mirrors() throws {
        let digest = try ContentDigest(of: [1])
        func shown(_ mirror: String?) -> String? {
            let past = FreshetCache.PastGeneration(
                number: 1, digest: digest, size: 1, committedAt: WallTime(seconds: 1), mirror: mirror,
                isKept: true)
            return FreshetControl.PastGeneration(past, current: nil, withdrawn: nil).mirror
        }
        #expect(shown("https://user:secret@example.com/a?key=secret")?.contains("secret") == false)
        #expect(shown("https://example.com/a") == "https://example.com/a")
        #expect(shown("") == nil)
        #expect(shown(nil) == nil)
    }
}
