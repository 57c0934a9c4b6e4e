import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Checks at calendar times")
struct CalendarPlanTests {
    private let hourly: RefreshPolicy
    /// 2026-03-27 00:00 UTC, when the dialogue begins.
    private static let wall = WallTime(seconds: 1_774_569_600)

    init() throws { hourly = RefreshPolicy(calendar: [try CalendarEvent("hourly")], freshFor: .zero) }

    /// The plan of a policy.
    ///
    /// - Parameter ahead: how much the wall clock was set forward since the dialogue began, in seconds.
    private func plan(_ policy: RefreshPolicy, ahead: Double = 0, zone: TimeZoneRules = .utc) -> CalendarPlan? {
        CalendarPlan(
            policy.calendar, zone: { _ in zone }, at: Dialogue.beginning,
            wall: Self.wall.advanced(by: .milliseconds(Int64(ahead * 1000))))
    }

    @Test("a check comes at each time, whenever the last one was")
    func times() {
        let dialogue = Dialogue(hourly, lastCheck: 0, calendar: plan(hourly))
        #expect(dialogue.pass(until: 3605) == [.init(at: 3600, output: .starts(1, ["timer"]))])
        _ = dialogue.at(3605, .succeeds(1))
        #expect(dialogue.nextRun == PlannedRun(at: Dialogue.instant(7200), reason: .timer))
        _ = dialogue.at(5000, .receives("file", at: 5000))
        _ = dialogue.at(5001, .succeeds(2))
        #expect(dialogue.wake == 7200)
    }

    @Test("the random delay is added, and a check in between answers the time")
    func delay() {
        let dialogue = Dialogue(hourly, plannedDelay: .seconds(300), lastCheck: 0, calendar: plan(hourly))
        #expect(dialogue.wake == 3900)
        _ = dialogue.at(3700, .receives("file", at: 3700))
        _ = dialogue.at(3701, .succeeds(1))
        #expect(dialogue.wake == 7500)
    }

    @Test("with every too, the earlier one counts")
    func both() {
        var policy = hourly
        policy.every = .seconds(900)
        let dialogue = Dialogue(policy, lastCheck: 3000, calendar: plan(policy))
        #expect(dialogue.wake == 3600)
    }

    @Test("a time that was missed in sleep or while the daemon did not run is caught up once")
    func missed() {
        let slept = Dialogue(hourly, lastCheck: 0, calendar: plan(hourly))
        #expect(slept.at(90_000, .woke, .timer) == [.starts(1, ["timer"])])
        _ = slept.at(90_001, .succeeds(1))
        #expect(slept.wake == 93_600)
        let stopped = Dialogue(hourly, lastCheck: -90_000, calendar: plan(hourly))
        #expect(stopped.pass(until: 10) == [.init(at: 2, output: .starts(1, ["timer"]))])
        let never = Dialogue(hourly, calendar: plan(hourly))
        #expect(never.pass(until: 10) == [.init(at: 2, output: .starts(1, ["timer"]))])
    }

    @Test("when the wall clock is set, the next check is planned again")
    func clockSet() {
        let dialogue = Dialogue(hourly, lastCheck: 0, calendar: plan(hourly))
        #expect(dialogue.wake == 3600)
        // Half an hour forward: the full hour comes earlier.
        let forward = plan(hourly, ahead: 1800).map(Shared.init(wrappedValue:))
        _ = dialogue.at(10, .clockStepped(nil, calendar: forward))
        #expect(dialogue.wake == 1800)
        // Back again, after the check of that hour: the hour comes again.
        #expect(dialogue.pass(until: 1800).count == 1)
        _ = dialogue.at(1801, .succeeds(1))
        #expect(dialogue.wake == 5400)
        _ = dialogue.at(1802, .clockStepped(nil, calendar: plan(hourly).map(Shared.init(wrappedValue:))))
        #expect(dialogue.wake == 3600)
    }

    @Test("a step over a time makes that check overdue, once")
    func stepOver() {
        let dialogue = Dialogue(hourly, lastCheck: 0, calendar: plan(hourly))
        let forward = plan(hourly, ahead: 1200).map(Shared.init(wrappedValue:))
        // From 00:50 to 01:10.
        #expect(dialogue.at(3000, .clockStepped(nil, calendar: forward)) == [.starts(1, ["timer"])])
        _ = dialogue.at(3001, .succeeds(1))
        #expect(dialogue.wake == 6000)
    }

    @Test("when the time zone changes, the next check is planned again")
    func zone() throws {
        let policy = RefreshPolicy(calendar: [try CalendarEvent("06:00")], freshFor: .zero)
        let dialogue = Dialogue(policy, lastCheck: 0, calendar: plan(policy))
        #expect(dialogue.wake == 21_600)
        let kathmandu = try CalendarEventTests.zone("Asia/Kathmandu")
        let moved = plan(policy, zone: kathmandu).map(Shared.init(wrappedValue:))
        _ = dialogue.at(10, .zoneChanged(moved))
        // 06:00 there is 00:15 UTC.
        #expect(dialogue.wake == 900)
    }

    @Test("a change of the clock during a run or a retry does not start another run")
    func duringRun() {
        let dialogue = Dialogue(hourly, lastCheck: 0, calendar: plan(hourly))
        #expect(dialogue.pass(until: 3600).count == 1)
        let forward = plan(hourly, ahead: 1800).map(Shared.init(wrappedValue:))
        #expect(dialogue.at(3601, .clockStepped(nil, calendar: forward)) == [])
        _ = dialogue.at(3602, .succeeds(1))
        #expect(dialogue.wake == 5400)
    }

    @Test("a copy that is confirmed as of an earlier moment does not repeat the time")
    func earlierConfirmation() {
        let dialogue = Dialogue(hourly, lastCheck: 0, calendar: plan(hourly))
        #expect(dialogue.pass(until: 3600).count == 1)
        let earlier = RunResult.succeeded(changed: false, generation: 1, at: Dialogue.instant(3000))
        _ = dialogue.at(3601, .ended(run: 1, earlier))
        #expect(dialogue.wake == 7200)
    }

    @Test("after a rejection, checks come at growing intervals, and at the next time at the latest")
    func rejection() {
        let dialogue = Dialogue(hourly, lastCheck: 0, calendar: plan(hourly))
        #expect(dialogue.pass(until: 3600).count == 1)
        let rejection = RunFailure(.content, "rejected", rejection: .lasting)
        _ = dialogue.at(3601, .ended(run: 1, .failed(rejection)))
        #expect(dialogue.wake == 3661)
    }
}
