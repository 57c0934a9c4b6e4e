import Testing

@testable import FreshetSystemd

@Suite("The watchdog")
struct WatchdogTests {
    @Test("wants a sign of life each half of its time")
    func interval() throws {
        let watchdog = try #require(Watchdog(environment: ["WATCHDOG_USEC": "60000000"], process: 77))
        #expect(watchdog.limit == .seconds(60))
        #expect(watchdog.interval == .seconds(30))
    }

    @Test("watches the process that it names, or any if it names none")
    func process() {
        let environment = ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "77"]
        #expect(Watchdog(environment: environment, process: 77) != nil)
        #expect(Watchdog(environment: environment, process: 78) == nil)
        #expect(Watchdog(environment: ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "x"], process: 77) == nil)
    }

    @Test(
        "is none without a time that can pass",
        arguments: ["", "0", "-5", "x", "18446744073709551615", "99999999999999999999999"])
    func broken(_ time: String) {
        #expect(Watchdog(environment: ["WATCHDOG_USEC": time], process: 77) == nil)
    }

    @Test("is none where nobody asked for it")
    func none() {
        #expect(Watchdog(environment: [:], process: 77) == nil)
    }
}
