import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Freshness stated by the origin")
struct HonourOriginTests {
    private let policy = RefreshPolicy(every: .seconds(3600), quiet: .zero, freshFor: .seconds(60), honoursOrigin: true)

    private func succeeds(_ run: UInt64, expires: Double?) -> RefreshMachine.Event {
        .ended(run: run, .succeeded(changed: true, generation: run, expires: expires.map(Dialogue.instant)))
    }

    @Test("it lengthens fresh-for for environment signals, and delays neither requests nor planned checks")
    func lengthens() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, succeeds(1, expires: 10_000))
        #expect(dialogue.at(900, .receives("network", at: 900)) == [])
        #expect(
            dialogue.events.last
                == .skipped(
                    [RunCause("network", first: Dialogue.instant(900))], freshUntil: Dialogue.instant(10_000)))
        #expect(dialogue.at(1000, .receives("reload", at: 1000)) == [.starts(2, ["reload"])])
        _ = dialogue.at(1001, succeeds(2, expires: 10_000))
        #expect(dialogue.pass(until: 4602) == [.init(at: 4601, output: .starts(3, ["timer"]))])
    }

    @Test("it never shortens fresh-for, and counts only if it is configured")
    func neverShortens() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, succeeds(1, expires: 1))
        #expect(dialogue.at(50, .receives("network", at: 50)) == [])
        #expect(dialogue.freshness == .fresh)
        #expect(dialogue.at(70, .receives("network", at: 70)) == [.starts(2, ["network"])])
        var deaf = policy
        deaf.honoursOrigin = false
        let other = Dialogue(deaf)
        _ = other.at(0, .receives("start", at: 0))
        _ = other.at(1, succeeds(1, expires: 10_000))
        #expect(other.at(70, .receives("network", at: 70)) == [.starts(2, ["network"])])
    }

    @Test("the copy is fresh before it and stale after it; another check replaces it, also by no statement")
    func stale() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, succeeds(1, expires: 500))
        _ = dialogue.at(499, .timer)
        #expect(dialogue.freshness == .fresh)
        _ = dialogue.at(500, .timer)
        #expect(dialogue.freshness == .stale)
        _ = dialogue.at(600, .receives("file", at: 600))
        _ = dialogue.at(601, succeeds(2, expires: nil))
        _ = dialogue.at(2000, .timer)
        #expect(dialogue.freshness == .fresh)
        // A check fails within the time that the origin stated: the copy stays fresh.
        _ = dialogue.at(2100, .receives("file", at: 2100))
        _ = dialogue.at(2101, succeeds(3, expires: 9000))
        _ = dialogue.at(2200, .receives("file", at: 2200))
        _ = dialogue.at(2201, .fails(4, .transient))
        #expect(dialogue.freshness == .fresh)
    }

    @Test("it says nothing about another source")
    func otherSource() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, succeeds(1, expires: 5000))
        _ = dialogue.at(
            10, .reconfigured(RefreshSettings(policy: policy, needsNetwork: true), sameProduct: false))
        #expect(dialogue.freshness == .stale)
    }

    @Test("it is stored across a restart, at most for a week, and ignored without the time of the check")
    func memory() {
        let now = Dialogue.beginning
        func memory(_ expires: WallTime?, lastCheck: WallTime? = 1_000_000_000) -> BootInstant? {
            StoredRefreshState(
                StoredTimes(PersistentState(lastCheck: lastCheck, expires: expires)), now: now,
                wallNow: 1_000_000_000, tolerance: .seconds(60)
            ).expires
        }
        #expect(memory(1_030_000_000) == Dialogue.instant(30))
        #expect(memory(970_000_000) == Dialogue.instant(-30))
        #expect(memory(.max) == now.advanced(by: DataExpiry.longest))
        #expect(memory(nil) == nil)
        #expect(memory(1_030_000_000, lastCheck: nil) == nil)
        // The clock was set back by an hour since then.
        #expect(memory(1_030_000_000, lastCheck: 4_600_000_000) == nil)
    }

    @Test(
        "it is kept with the copy, renewed by a 304, gone without a statement, honoured after a restart"
    )
    func stage() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .seconds(60), honoursOrigin: true))
        stage.origin.answers(
            .fresh(.seconds(1000), .content("data", tag: "\"1\"")), .fresh(.seconds(5000), .notModified), .notModified)
        try stage.start()
        try stage.fire("start")
        #expect(stage.store.rememberedNow.expires == stage.clock.wallStart + 1_000_000_000)
        #expect(stage.status.originExpires == stage.clock.start.advanced(by: .seconds(1000)))
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

    @Test("it is not kept if it is not configured, and otherwise for at most a week")
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

    private func events(_ dialogue: Dialogue) -> [EngineEvent] {
        dialogue.events.filter {
            switch $0 {
            case .expired, .expiredNoMore: true
            default: false
            }
        }
    }

    private func dialogue(maxAge: Double?, lastCheck: Double? = nil, retry: RetryPolicy = RetryPolicy()) -> Dialogue {
        Dialogue(
            RefreshPolicy(every: .seconds(3600), quiet: .zero, freshFor: .zero, retry: retry), lastCheck: lastCheck,
            maxAge: maxAge)
    }

    @Test("it has expired, which is reported once, and reported again when it is fresh again")
    func expires() {
        let dialogue = dialogue(maxAge: 5000, retry: RetryPolicy(from: .seconds(3600), to: .seconds(3600)))
        // It was never checked, so it was overdue at the start.
        _ = dialogue.at(10, .succeeds(1))
        #expect(dialogue.pass(until: 3610).map(\.output) == [.starts(2, ["timer"])])
        _ = dialogue.at(3611, .fails(2, .refused))
        #expect(events(dialogue) == [])
        #expect(dialogue.wake == 5010, "nothing else is due before")
        _ = dialogue.at(5010, .timer)
        #expect(dialogue.freshness == .expired)
        #expect(events(dialogue) == [.expired(checked: Dialogue.instant(10))])
        _ = dialogue.at(6000, .timer)
        _ = dialogue.at(6001, .receives("reload", at: 6001))
        #expect(dialogue.freshness == .expired)
        _ = dialogue.at(6002, .succeeds(3))
        #expect(dialogue.freshness == .fresh)
        #expect(events(dialogue) == [.expired(checked: Dialogue.instant(10)), .expiredNoMore])
    }

    @Test("at a start the expiry is reported immediately, and a longer max-age ends it")
    func start() {
        let dialogue = dialogue(maxAge: 100, lastCheck: -101)
        #expect(events(dialogue) == [.expired(checked: Dialogue.instant(-101))])
        _ = dialogue.at(1, .reconfigured(settings(1000), sameProduct: true))
        #expect(events(dialogue).last == .expiredNoMore)
        #expect(dialogue.freshness != .expired)
        _ = dialogue.at(2, .reconfigured(settings(nil), sameProduct: true))
        _ = dialogue.at(50_000, .timer)
        #expect(events(dialogue).count == 2)
    }

    @Test("a new configuration does not make the copy younger")
    func otherSource() {
        let dialogue = dialogue(maxAge: 1000, lastCheck: -500)
        _ = dialogue.at(10, .reconfigured(settings(1000), sameProduct: false))
        #expect(dialogue.freshness == .stale)
        _ = dialogue.at(500, .timer)
        #expect(dialogue.freshness == .expired)
    }

    @Test("a pipeline without a copy has nothing that could expire")
    func nothing() {
        let dialogue = dialogue(maxAge: 10)
        _ = dialogue.at(1000, .timer)
        #expect(dialogue.freshness == nil)
        #expect(events(dialogue) == [])
    }

    @Test(
        "an unknown age counts from the commit of the copy; a clock that was set back makes it no younger than now"
    )
    func memory() {
        func confirmed(_ lastCheck: WallTime?, committed: WallTime? = 700_000_000) -> BootInstant? {
            var state = PersistentState(
                generation: committed.map {
                    CurrentGeneration(number: 1, size: 1, digest: "", committedAt: $0, path: "f")
                }, lastCheck: lastCheck)
            state.isOfOtherConfiguration = true
            let memory = StoredRefreshState(
                StoredTimes(state), now: Dialogue.beginning, wallNow: 1_000_000_000, tolerance: .seconds(60))
            #expect(memory.lastCheck == nil)
            return memory.confirmed
        }
        #expect(confirmed(900_000_000) == Dialogue.instant(-100))
        #expect(confirmed(nil) == Dialogue.instant(-300))
        #expect(confirmed(5_000_000_000) == Dialogue.instant(0))
        #expect(confirmed(nil, committed: nil) == nil)
    }

    @Test("a clock that is set shows the true age of a copy that was checked before the start")
    func clockStep() {
        let dialogue = dialogue(maxAge: 1000, lastCheck: -10)
        let memory = StoredRefreshState(
            lastCheck: Dialogue.instant(-5000), confirmed: Dialogue.instant(-5000), hasGeneration: true)
        _ = dialogue.at(1, .clockStepped(memory))
        #expect(events(dialogue) == [.expired(checked: Dialogue.instant(-5000))])
    }

    @Test("another max-age alone makes the same copy, and is not a reason to fetch")
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
