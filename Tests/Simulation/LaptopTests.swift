import FreshetModel
import FreshetPipelines
import Testing
import WorldTestSupport

@Suite("A laptop's day", .ownThread)
struct LaptopTests {
    @Test("wherever it goes, the copy is fresh as soon as the network is reachable, and no failure is reported")
    func day() throws {
        let machine = Machine(["pipelines/news.yaml": pipeline("news", "every: 15min")])
        let origin = machine.origin("news")
        origin.answers(.after(.milliseconds(80), good))
        func isFetchedNow(_ place: String) {
            #expect(origin.times.last == machine.place.now, "\(place)")
        }
        // At home.
        try machine.network("home")
        try machine.boot()
        isFetchedNow("home")
        try machine.pass(.seconds(40 * 60))
        #expect(origin.times.count == 3)
        // On the way to work: it sleeps, and wakes where there is no network yet.
        try machine.network(nil)
        machine.sleep(.seconds(50 * 60))
        try machine.wake()
        try machine.pass(.seconds(5))
        #expect(machine.status("news")?.activity.wait?.reason == .network)
        #expect(machine.status("news")?.generation?.number == 1)
        // The dock's link bounces; the first bounce starts a run.
        try machine.network("dock")
        isFetchedNow("dock")
        for _ in 0..<20 {
            try machine.pass(.milliseconds(300))
            try machine.network(nil)
            try machine.pass(.milliseconds(300))
            try machine.network("dock")
        }
        try machine.pass(.seconds(60))
        // A tunnel comes up and is renewed all morning.
        for _ in 0..<4 {
            try machine.network("tunnel")
            try machine.pass(.seconds(59 * 60))
            try machine.network("dock")
            try machine.pass(.seconds(60))
        }
        // Lunch.
        try machine.network(nil)
        machine.sleep(.seconds(3600))
        try machine.wake()
        try machine.network("dock")
        isFetchedNow("after lunch")
        try machine.pass(.seconds(4 * 3600))
        // Half an hour on a train, a minute of network now and then.
        let beforeTrain = origin.times.count
        for _ in 0..<20 {
            try machine.network(nil)
            try machine.pass(.seconds(30))
            try machine.network("train")
            try machine.pass(.seconds(60))
        }
        #expect(origin.times.count - beforeTrain <= 21)
        try machine.network(nil)
        machine.sleep(.seconds(1800))
        try machine.wake()
        try machine.network("home")
        try machine.pass(.seconds(6 * 3600))
        #expect(machine.witness.failures(of: "news") == 0)
        // A check for each quarter of an hour awake, a request each time that the network came, and two for the dock.
        #expect(origin.times.count <= 14 * 4 + 12 + 20 + 2)
        #expect(machine.status("news")?.freshness == .fresh)
        try machine.stop()
        #expect(machine.witness.errors == [])
    }

    @Test("after a day of sleep it checks once")
    func longSleep() throws {
        let machine = Machine(["pipelines/news.yaml": pipeline("news", "every: 15min")])
        machine.origin("news").answers(good)
        try machine.boot()
        machine.sleep(.seconds(24 * 3600))
        try machine.wake()
        try machine.network("home")
        try machine.pass(.seconds(30))
        #expect(machine.origin("news").times == [0, 86400])
        #expect(machine.witness.errors == [])
    }

    @Test(
        "the kernel has a route before the resolver works: no failure, and a copy within a second after it works",
        arguments: [0.3, 1.1, 4.2, 12.5])
    func grace(_ readyAfter: Double) throws {
        let machine = Machine(["pipelines/news.yaml": pipeline("news", "every: 15min")])
        let origin = machine.origin("news")
        origin.answers(good)
        try machine.network(nil)
        try machine.boot()
        try machine.pass(.seconds(600))
        origin.answers(.fails(RunFailure(.connection, "the name could not be resolved")))
        try machine.network("wlan")
        try machine.pass(.milliseconds(Int64(readyAfter * 1000)))
        origin.answers(good)
        let ready = machine.place.now
        try machine.pass(.seconds(30))
        // The waits double, so the next attempt comes at the latest after the same time again.
        #expect((origin.times.last ?? 0) - ready <= max(1, readyAfter + 0.25))
        #expect(origin.times.count <= 8)
        #expect(machine.witness.failures(of: "news") == 0)
        #expect(machine.status("news")?.activity == .loaded)
        #expect(machine.witness.errors == [])
    }
}
