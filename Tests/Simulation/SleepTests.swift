import FreshetModel
import FreshetPipelines
import Testing
import WorldTestSupport

@Suite("A machine that sleeps", .ownThread)
struct SleepTests {
    private func machine(_ refresh: String = "every: 15min") -> Machine {
        let machine = Machine(["pipelines/news.yaml": pipeline("news", refresh)])
        machine.origin("news").answers(good)
        return machine
    }

    @Test(
        "after a night there is one run for the wake and the overdue check, with logind or without",
        arguments: [true, false])
    func night(_ hasLogind: Bool) throws {
        let machine = machine()
        try machine.boot()
        if hasLogind { try machine.goesToSleep() }
        machine.sleep(.seconds(8 * 3600))
        try machine.wake()
        try machine.pass(.seconds(60))
        #expect(machine.witness.causes(of: "news") == ["start", "timer, resume"])
        #expect(machine.witness.starts(of: "news") == [0, 28800])
        #expect(machine.witness.errors == [])
    }

    @Test("a pipeline without a subscription to `resume` is checked once after the wake, and not before")
    func deaf() throws {
        let machine = machine("every: 15min, on: [start]")
        try machine.boot()
        try machine.pass(.seconds(890))
        try machine.goesToSleep()
        try machine.pass(.seconds(20))
        #expect(machine.status("news")?.activity.wait?.reason == .sleep)
        machine.sleep(.seconds(8 * 3600))
        try machine.wake()
        try machine.pass(.seconds(60))
        #expect(machine.witness.starts(of: "news") == [0, 29710])
        #expect(machine.witness.errors == [])
    }

    @Test("overdue checks of many machines are spread by their random delays")
    func spread() throws {
        var starts: Set<Double> = []
        for host in 1...20 {
            let machine = Machine(
                ["pipelines/news.yaml": pipeline("news", "every: 15min, random-delay: 5min, on: [start]")],
                host: UInt64(host))
            machine.origin("news").answers(good)
            try machine.boot()
            machine.sleep(.seconds(8 * 3600))
            try machine.wake()
            try machine.pass(.seconds(301))
            let after = machine.witness.starts(of: "news").dropFirst()
            #expect(after.count == 1)
            starts.formUnion(after)
            #expect(machine.witness.errors == [])
        }
        #expect(starts.count == 20)
    }

    @Test("a run whose connections died during the sleep is repeated at the wake, and does not count as failed")
    func deadConnection() throws {
        let machine = machine()
        let origin = machine.origin("news")
        origin.answers(.after(.seconds(2), good))
        try machine.boot()
        try machine.pass(.seconds(1))
        try machine.goesToSleep()
        machine.sleep(.seconds(3600))
        try machine.wake()
        try machine.pass(.seconds(10))
        #expect(machine.witness.outcomes(of: "news") == [.superseded, .changed])
        #expect(machine.witness.causes(of: "news") == ["start", "start, resume"])
        #expect(machine.witness.starts(of: "news") == [0, 3601])
        #expect(machine.place.internet.open == 0)
        #expect(machine.witness.errors == [])
    }

    @Test(
        "the carrier is lost one second after the wake and back two seconds later: one success, no failure counted",
        arguments: [0.05, 1.5, 60])
    func carrier(_ answerTakes: Double) throws {
        let machine = machine()
        let origin = machine.origin("news")
        try machine.boot()
        origin.answers(.after(.milliseconds(Int64(answerTakes * 1000)), good))
        try machine.goesToSleep()
        machine.sleep(.seconds(3600))
        try machine.wake()
        try machine.pass(.seconds(1))
        try machine.network(nil)
        try machine.pass(.seconds(2))
        try machine.network("home")
        try machine.pass(.seconds(100))
        let outcomes = machine.witness.outcomes(of: "news").dropFirst()
        #expect(outcomes.count { $0 == .unchanged } == 1)
        #expect(machine.witness.failures(of: "news") == 0)
        #expect(machine.status("news")?.activity == .loaded)
        #expect(machine.witness.errors == [])
    }

    @Test("the route is there before the network behind it: it is retried soon, and nothing has failed")
    func staleRoute() throws {
        let machine = machine()
        let origin = machine.origin("news")
        try machine.boot()
        machine.sleep(.seconds(3600))
        origin.answers(.fails(RunFailure(.connection, "the name could not be resolved")))
        try machine.wake()
        try machine.pass(.seconds(5))
        origin.answers(good)
        try machine.pass(.seconds(10))
        #expect(origin.times.dropFirst() == [3600, 3600.25, 3600.75, 3601.75, 3603.75, 3607.75])
        #expect(machine.witness.failures(of: "news") == 0)
        #expect(machine.status("news")?.activity == .loaded)
        #expect(machine.witness.errors == [])
    }

    @Test("no run starts before the sleep, not even a forced one; afterwards all requests are one run")
    func failedSuspend() throws {
        let machine = machine()
        try machine.boot()
        try machine.pass(.seconds(120))
        try machine.goesToSleep()
        try machine.network("office")
        try machine.refresh("news", force: true)
        try machine.pass(.milliseconds(800))
        #expect(machine.witness.starts(of: "news") == [0])
        try machine.goesToSleep(false)
        #expect(machine.witness.starts(of: "news") == [0, 120.8])
        #expect(machine.witness.causes(of: "news").last == "network, operator, resume")
        try machine.pass(.seconds(60))
        #expect(machine.witness.starts(of: "news").count == 2)
        #expect(machine.witness.errors == [])
    }

    @Test("an announced sleep that does not come delays runs for at most half a minute")
    func announcedOnly() throws {
        let machine = machine("every: 15min, on: [start]")
        try machine.boot()
        try machine.pass(.seconds(890))
        try machine.goesToSleep()
        try machine.pass(.seconds(60))
        #expect(machine.witness.starts(of: "news") == [0, 920])
        #expect(machine.witness.errors == [])
    }

    @Test("a pipeline that is added while the machine is about to sleep waits too")
    func newcomer() throws {
        let machine = machine()
        try machine.boot()
        try machine.goesToSleep()
        machine.files["pipelines/more.yaml"] = pipeline("more")
        machine.origin("more").answers(good)
        try machine.reload()
        try machine.refresh("more")
        #expect(machine.witness.starts(of: "more") == [])
        machine.sleep(.seconds(3600))
        try machine.wake()
        #expect(machine.witness.starts(of: "more") == [3600])
        #expect(machine.witness.errors == [])
    }

    @Test("a request that failed by the certificate's date is repeated when the clock is set")
    func certificate() throws {
        let machine = machine("retry: {from: 5min, to: 5min}")
        let origin = machine.origin("news")
        origin.answers(.fails(RunFailure(.certificateDate, "not valid yet")), good)
        try machine.boot()
        #expect(machine.status("news")?.generation == nil)
        try machine.stepClock(by: .seconds(3 * 365 * 86_400))
        #expect(machine.status("news")?.activity == .loaded)
        #expect(origin.times == [0, 0])
        #expect(machine.witness.errors == [])
    }

    @Test("a clock that stood still while the machine was off: the check is due as soon as the clock is set")
    func stoodStill() throws {
        let machine = machine("every: 1d, fresh-for: 1h")
        try machine.boot()
        try machine.pass(.seconds(60))
        try machine.stop()
        try machine.boot()
        #expect(machine.witness.starts(of: "news") == [0])
        try machine.stepClock(by: .seconds(3 * 86_400))
        #expect(machine.witness.starts(of: "news") == [0, 60])
        #expect(machine.witness.causes(of: "news").last == "timer")
        // From here on a step changes only the shown times.
        let checked = try #require(machine.status("news")?.lastCheck)
        try machine.stepClock(by: .seconds(-3600))
        #expect(machine.status("news")?.lastCheck == checked - 3_600_000_000)
        try machine.pass(.seconds(3600))
        #expect(machine.witness.starts(of: "news") == [0, 60])
        #expect(machine.witness.errors == [])
    }
}
