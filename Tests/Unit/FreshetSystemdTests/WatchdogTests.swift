import Testing

@testable import FreshetSystemd

@Suite("The watchdog")
struct WatchdogTests {
    @Test("has an interval of half its limit")
    func interval() throws {
        let watchdog = try #require(Watchdog(environment: ["WATCHDOG_USEC": "60000000"], process: 77))
        #expect(watchdog.limit == .seconds(60))
        #expect(watchdog.interval == .seconds(30))
    }

    @Test("watches the named process, or any if none is named")
    func process() {
        let environment = ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "77"]
        #expect(Watchdog(environment: environment, process: 77) != nil)
        #expect(Watchdog(environment: environment, process: 78) == nil)
        #expect(Watchdog(environment: ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "x"], process: 77) == nil)
    }

    @Test(
        "is nil without a valid time",
        arguments: ["", "0", "-5", "x", "18446744073709551615", "99999999999999999999999"])
    func broken(_ time: String) {
        #expect(Watchdog(environment: ["WATCHDOG_USEC": time], process: 77) == nil)
    }

    @Test("is nil without a request")
    func none() {
        #expect(Watchdog(environment: [:], process: 77) == nil)
    }
}
