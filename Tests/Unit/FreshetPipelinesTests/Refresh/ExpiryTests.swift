import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("What the origin says of the data's freshness")
struct HonourOriginTests {
    private let policy = RefreshPolicy(every: .seconds(3600), quiet: .zero, freshFor: .seconds(60), honoursOrigin: true)

    private func succeeds(_ run: UInt64, expires: Double?) -> RefreshMachine.Event {
        .ended(run: run, .succeeded(changed: true, generation: run, expires: expires.map(Dialogue.instant)))
    }

    @Test("lengthens fresh-for for the surroundings, and holds back neither demands nor the clock")
    func lengthens() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(1, succeeds(1, expires: 10_000))
        #expect(talk.at(900, .hears("network", at: 900)) == [])
        #expect(
            talk.events.last
                == .suppressed(
                    [RunCause("network", first: Dialogue.instant(900))], freshUntil: Dialogue.instant(10_000)))
        #expect(talk.at(1000, .hears("reload", at: 1000)) == [.starts(2, ["reload"])])
        _ = talk.at(1001, succeeds(2, expires: 10_000))
        #expect(talk.pass(until: 4602) == [.init(at: 4601, deed: .starts(3, ["timer"]))])
    }

    @Test("never shortens it, and counts only if it is to be heard")
    func neverShortens() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(1, succeeds(1, expires: 1))
        #expect(talk.at(50, .hears("network", at: 50)) == [])
        #expect(talk.freshness == .fresh)
        #expect(talk.at(70, .hears("network", at: 70)) == [.starts(2, ["network"])])
        var deaf = policy
        deaf.honoursOrigin = false
        let other = Dialogue(deaf)
        _ = other.at(0, .hears("start", at: 0))
        _ = other.at(1, succeeds(1, expires: 10_000))
        #expect(other.at(70, .hears("network", at: 70)) == [.starts(2, ["network"])])
    }

    @Test("past it the copy is stale, before it fresh; another check's word takes its place, no word too")
    func stale() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, succeeds(1, expires: 500))
        _ = talk.at(499, .timer)
        #expect(talk.freshness == .fresh)
        _ = talk.at(500, .timer)
        #expect(talk.freshness == .stale)
        _ = talk.at(600, .hears("file", at: 600))
        _ = talk.at(601, succeeds(2, expires: nil))
        _ = talk.at(2000, .timer)
        #expect(talk.freshness == .fresh)
        // It fails within the time that the origin gave: the copy is as good as it was.
        _ = talk.at(2100, .hears("file", at: 2100))
        _ = talk.at(2101, succeeds(3, expires: 9000))
        _ = talk.at(2200, .hears("file", at: 2200))
        _ = talk.at(2201, .fails(4, .transient))
        #expect(talk.freshness == .fresh)
    }

    @Test("of another source it says nothing")
    func otherSource() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, succeeds(1, expires: 5000))
        _ = talk.at(
            10, .reconfigured(RefreshSettings(policy: policy, needsNetwork: true), sameProduct: false))
        #expect(talk.freshness == .stale)
    }

    @Test("is remembered across a restart, at most for a week, and not believed without the check's time")
    func memory() {
        let now = Dialogue.beginning
        func memory(_ expires: Int64?, lastCheck: Int64? = 1_000_000_000) -> ContinuousClock.Instant? {
            StoredRefreshState(
                PersistentState(lastCheck: lastCheck, expires: expires), now: now, wallNow: 1_000_000_000,
                tolerance: .seconds(60)
            ).expires
        }
        #expect(memory(1_030_000_000) == Dialogue.instant(30))
        #expect(memory(970_000_000) == Dialogue.instant(-30))
        #expect(memory(.max) == now.advanced(by: DataExpiry.longest))
        #expect(memory(nil) == nil)
        #expect(memory(1_030_000_000, lastCheck: nil) == nil)
        // The clock was set back by an hour since.
        #expect(memory(1_030_000_000, lastCheck: 4_600_000_000) == nil)
    }

    @Test(
        "a pipeline at work: kept with the copy, renewed by a 304, gone with what nobody says, heeded after a restart")
    func stage() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .seconds(60), honoursOrigin: true))
        stage.origin.answers(
            .fresh(.seconds(1000), .content("data", tag: "\"1\"")), .fresh(.seconds(5000), .notModified), .notModified)
        try stage.start()
        try stage.fire("start")
        #expect(stage.store.rememberedNow.expires == stage.clock.wallStart + 1_000_000_000)
        #expect(stage.status.originExpires == stage.clock.manual.start.advanced(by: .seconds(1000)))
        try stage.advance(900)
        try stage.fire("network")
        try stage.restart()
        try stage.fire("start")
        #expect(stage.origin.times == [0])
        try stage.advance(200)
        try stage.fire("network")
        #expect(stage.origin.times == [0, 1100])
        #expect(stage.store.rememberedNow.expires == stage.clock.wallStart + 6_100_000_000)
        try stage.advance(4000)
        try stage.fire("network")
        try stage.advance(100)
        try stage.fire("reload")
        #expect(stage.origin.times == [0, 1100, 5200])
        #expect(stage.store.rememberedNow.expires == nil)
        #expect(stage.status.originExpires == nil)
    }

    @Test("nothing is kept of it where it is not to be heard, and no more than a week where it is")
    func limits() throws {
        let deaf = try Stage(RefreshPolicy(freshFor: .zero))
        deaf.origin.answers(.fresh(.seconds(1000), .content("data")))
        try deaf.start()
        try deaf.fire("start")
        #expect(deaf.store.rememberedNow.expires == nil)
        let eager = try Stage(RefreshPolicy(freshFor: .zero, honoursOrigin: true))
        eager.origin.answers(.fresh(.seconds(365 * 86_400), .content("data")))
        try eager.start()
        try eager.fire("start")
        #expect(eager.store.rememberedNow.expires == eager.clock.wallStart + 7 * 86_400_000_000)
        try eager.advance(7 * 86_400 - 1)
        try eager.fire("network")
        #expect(eager.origin.times.count == 1)
        try eager.advance(1)
        try eager.fire("network")
        #expect(eager.origin.times.count == 2)
    }
}

@Suite("A copy past its max-age")
struct MaxAgeTests {
    private func settings(_ maxAge: Double?, every: Double = 3600) -> RefreshSettings {
        RefreshSettings(
            policy: RefreshPolicy(every: .seconds(every), quiet: .zero, freshFor: .zero), needsNetwork: true,
            maxAge: maxAge.map { .seconds($0) })
    }

    private func news(_ talk: Dialogue) -> [EngineEvent] {
        talk.events.filter {
            switch $0 {
            case .expired, .expiredNoMore: true
            default: false
            }
        }
    }

    private func talk(maxAge: Double?, lastCheck: Double? = nil, retry: RetryPolicy = RetryPolicy()) -> Dialogue {
        Dialogue(
            RefreshPolicy(every: .seconds(3600), quiet: .zero, freshFor: .zero, retry: retry), lastCheck: lastCheck,
            maxAge: maxAge)
    }

    @Test("has expired, which is told once, and once more when it is fresh again")
    func expires() {
        let talk = talk(maxAge: 5000, retry: RetryPolicy(from: .seconds(3600), to: .seconds(3600)))
        // Never checked, it was overdue at the start.
        _ = talk.at(10, .succeeds(1))
        #expect(talk.pass(until: 3610).map(\.deed) == [.starts(2, ["timer"])])
        _ = talk.at(3611, .fails(2, .refused))
        #expect(news(talk) == [])
        #expect(talk.wake == 5010, "nothing else is due before")
        _ = talk.at(5010, .timer)
        #expect(talk.freshness == .expired)
        #expect(news(talk) == [.expired(checked: Dialogue.instant(10))])
        _ = talk.at(6000, .timer)
        _ = talk.at(6001, .hears("reload", at: 6001))
        #expect(talk.freshness == .expired)
        _ = talk.at(6002, .succeeds(3))
        #expect(talk.freshness == .fresh)
        #expect(news(talk) == [.expired(checked: Dialogue.instant(10)), .expiredNoMore])
    }

    @Test("at a start it is told at once, and a longer max-age takes it back")
    func start() {
        let talk = talk(maxAge: 100, lastCheck: -101)
        #expect(news(talk) == [.expired(checked: Dialogue.instant(-101))])
        _ = talk.at(1, .reconfigured(settings(1000), sameProduct: true))
        #expect(news(talk).last == .expiredNoMore)
        #expect(talk.freshness != .expired)
        _ = talk.at(2, .reconfigured(settings(nil), sameProduct: true))
        _ = talk.at(50_000, .timer)
        #expect(news(talk).count == 2)
    }

    @Test("what is configured anew does not make the copy younger")
    func otherSource() {
        let talk = talk(maxAge: 1000, lastCheck: -500)
        _ = talk.at(10, .reconfigured(settings(1000), sameProduct: false))
        #expect(talk.freshness == .stale)
        _ = talk.at(500, .timer)
        #expect(talk.freshness == .expired)
    }

    @Test("a pipeline without a copy has nothing that could expire")
    func nothing() {
        let talk = talk(maxAge: 10)
        _ = talk.at(1000, .timer)
        #expect(talk.freshness == nil)
        #expect(news(talk) == [])
    }

    @Test(
        "an age that is not known counts from when the copy came; a clock that was set back makes it no younger than new"
    )
    func memory() {
        func confirmed(_ lastCheck: Int64?, committed: Int64? = 700_000_000) -> ContinuousClock.Instant? {
            var state = PersistentState(
                generation: committed.map {
                    CurrentGeneration(number: 1, size: 1, digest: "", committedAt: $0, path: "f")
                }, lastCheck: lastCheck)
            state.isOfAnother = true
            let memory = StoredRefreshState(
                state, now: Dialogue.beginning, wallNow: 1_000_000_000, tolerance: .seconds(60))
            #expect(memory.lastCheck == nil)
            return memory.confirmed
        }
        #expect(confirmed(900_000_000) == Dialogue.instant(-100))
        #expect(confirmed(nil) == Dialogue.instant(-300))
        #expect(confirmed(5_000_000_000) == Dialogue.instant(0))
        #expect(confirmed(nil, committed: nil) == nil)
    }

    @Test("a clock that is set shows the true age of what was checked before the start")
    func clockStep() {
        let talk = talk(maxAge: 1000, lastCheck: -10)
        let memory = StoredRefreshState(
            lastCheck: Dialogue.instant(-5000), confirmed: Dialogue.instant(-5000), hasGeneration: true)
        _ = talk.at(1, .clockStepped(memory))
        #expect(news(talk) == [.expired(checked: Dialogue.instant(-5000))])
    }

    @Test("another max-age alone makes the same copy, and is no reason to fetch")
    func sameProduct() throws {
        var one = Stage.definition(RefreshPolicy())
        var other = one
        other.cache.maxAge = .seconds(5)
        #expect(one.makesTheSame(as: other))
        #expect(RefreshSettings(other).maxAge == .seconds(5))
        one.cache.keep = 9
        #expect(!one.makesTheSame(as: other))
    }
}
