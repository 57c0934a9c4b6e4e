import FreshetModel
import FreshetPipelines
import Testing
import WorldTestSupport

@Suite("Load on an origin", .ownThread)
struct OriginTests {
    private static let hour: Duration = .seconds(3600)

    @Test("fifty starts in ten minutes cost one request each time that the copy is older than fresh-for")
    func rebootLoop() throws {
        #expect(try rebootLoop("every: 15min").count <= 11)
        #expect(try rebootLoop("every: 15min, fresh-for: 10min").count <= 2)
    }

    /// When the origin got requests.
    private func rebootLoop(_ refresh: String) throws -> [Double] {
        let machine = Machine(["pipelines/news.yaml": pipeline("news", refresh)])
        machine.origin("news").answers(good)
        try machine.boot()
        for _ in 0..<50 {
            try machine.pass(.seconds(12))
            try machine.stop()
            // The network comes a moment after the daemon, as it does when a machine boots.
            try machine.network(nil)
            try machine.boot()
            try machine.network("home")
        }
        #expect(machine.status("news")?.generation?.number == 1)
        #expect(machine.witness.errors == [])
        return machine.origin("news").times
    }

    @Test("fifty starts during a Retry-After cost one request")
    func rebootLoopRetryAfter() throws {
        let machine = Machine(["pipelines/news.yaml": pipeline("news", "every: 15min")])
        machine.origin("news").answers(down(retryAfter: .seconds(605)))
        try machine.boot()
        for _ in 0..<50 {
            try machine.pass(.seconds(12))
            try machine.stop()
            try machine.boot()
            try machine.network("home")
        }
        #expect(machine.origin("news").times == [0])
        machine.origin("news").answers(good)
        try machine.pass(.seconds(305))
        #expect(machine.status("news")?.activity == .loaded)
        #expect(machine.witness.errors == [])
    }

    @Test(
        "an outage of a day costs a hundred spread attempts of each pipeline; soon afterwards it is fresh"
    )
    func downForADay() throws {
        let names = (0..<20).map { "p\($0)" }
        let machine = Machine(
            Dictionary(uniqueKeysWithValues: names.map { ("pipelines/\($0).yaml", pipeline($0, "every: 15min")) }))
        for name in names { machine.origin(name).answers(good) }
        try machine.boot()
        try machine.pass(.seconds(60))
        for name in names { machine.origin(name).answers(down()) }
        let begin = machine.place.now
        try machine.pass(Self.hour * 24)
        var perMinute: [Int: Int] = [:]
        for name in names {
            let attempts = machine.origin(name).times.filter { $0 > begin }
            // From 15 min on; random waits up to 300 s: 150 s on average.
            #expect((86_400 / 300...86_400 / 120).contains(attempts.count), "\(name): \(attempts.count)")
            // In the first quarter of an hour the waits double.
            for attempt in attempts where attempt > begin + 1800 { perMinute[Int(attempt) / 60, default: 0] += 1 }
            #expect(machine.status(name)?.generation?.number == 1, "the copy is published all day")
            #expect(machine.status(name)?.freshness == .stale)
        }
        // 8 a minute on average.
        #expect((perMinute.values.max() ?? 0) <= 24)
        for name in names { machine.origin(name).answers(good) }
        try machine.pass(.seconds(300))
        for name in names {
            #expect(machine.status(name)?.activity == .loaded)
            #expect(machine.status(name)?.freshness == .fresh)
        }
        try machine.stop()
        #expect(machine.witness.errors == [])
    }

    @Test(
        "Retry-After of an hour, all day: an attempt an hour, in spite of signals and requests without force"
    )
    func retryAfter() throws {
        let machine = Machine(["pipelines/news.yaml": pipeline("news", "every: 15min")])
        let origin = machine.origin("news")
        origin.answers(down(retryAfter: Self.hour))
        try machine.boot()
        for _ in 0..<(24 * 12) {
            try machine.pass(.seconds(300))
            try machine.network("home")
            try machine.network("office")
            guard case .retryAfter = try machine.refresh("news") else { continue }
        }
        #expect((20...25).contains(origin.times.count), "\(origin.times.count)")
        #expect(zip(origin.times, origin.times.dropFirst()).allSatisfy { $1 - $0 >= 3600 })
        // A forced run of the operator ignores it.
        try machine.pass(.seconds(10))
        let before = origin.times.count
        origin.answers(good)
        #expect(try machine.refresh("news", force: true) == nil)
        #expect(origin.times.count == before + 1)
        #expect(machine.status("news")?.activity == .loaded)
        #expect(machine.witness.errors == [])
        #expect(machine.witness.unanswered == [])
    }

    @Test("an origin that refuses soon gets planned requests only, and environment signals change nothing")
    func refused() throws {
        let machine = Machine(["pipelines/news.yaml": pipeline("news", "every: 15min")])
        machine.origin("news").answers(.fails(RunFailure(.refused, "404")))
        try machine.boot()
        for _ in 0..<(24 * 6) {
            try machine.pass(.seconds(600))
            try machine.network("home")
            try machine.network("office")
        }
        // After 1, 2, 4 and 8 minutes, then every 15, with a random part of a quarter at most.
        #expect((77...99).contains(machine.origin("news").times.count), "\(machine.origin("news").times.count)")
        #expect(machine.witness.errors == [])
    }

    @Test("a rejected error page is replaced within twice its time, although checks are planned twice a day")
    func errorPage() throws {
        let machine = Machine(["pipelines/news.yaml": pipeline("news", "every: 12h", check: "min-bytes: 3")])
        let origin = machine.origin("news")
        origin.answers(good)
        try machine.boot()
        try machine.pass(.seconds(60))
        origin.answers(.content("-"))
        #expect(try machine.refresh("news") == nil)
        for _ in 0..<6 {
            try machine.pass(.seconds(600))
            try machine.network("home")
            try machine.network("office")
        }
        #expect(machine.status("news")?.failing?.failure.rejection == .lasting)
        origin.answers(.content("good again"))
        try machine.pass(.seconds(3660))
        #expect(machine.status("news")?.activity == .loaded)
        // Environment signals are received as usual.
        #expect(origin.times.count <= 2 + 12 + 8, "\(origin.times.count)")
        #expect(machine.witness.errors == [])
    }

    @Test(
        "requests of two hundred hosts that boot at the same time are spread over the splay, and after an outage again")
    func splay() throws {
        let place = Place()
        let url = "https://fleet.example.com/data"
        let origin = place.internet[url]
        origin.answers(good)
        var dice = Jitter(seed: 7)
        let machines = (0..<200).map { _ in
            Machine(
                [
                    "freshet.yaml": "splay: 10min\n",
                    "pipelines/fleet.yaml": pipeline("fleet", "every: 1h", url: url),
                ], at: place, host: dice.next(), seed: dice.next())
        }
        for machine in machines { try machine.boot() }
        try place.pass(.seconds(601))
        expectSpread(origin.times, from: 0)
        // Its second hour begins with an outage for all hosts.
        for machine in machines { try machine.network(nil) }
        try place.pass(Self.hour * 2)
        let outageEnds = place.now
        let before = origin.times.count
        for machine in machines { try machine.network("uplink") }
        try place.pass(.seconds(601))
        expectSpread(Array(origin.times.dropFirst(before)), from: outageEnds)
        for machine in machines { #expect(machine.witness.errors == []) }
    }

    /// 200 requests in 20 buckets of 30 s: 10 each on average; by chance alone, a bucket with more than 25 or an empty
    /// one is seen less than once in a thousand times.
    private func expectSpread(_ times: [Double], from start: Double) {
        var buckets = Array(repeating: 0, count: 20)
        for time in times {
            let bucket = Int((time - start) / 30)
            #expect(buckets.indices.contains(bucket), "\(time - start) s is not within the splay")
            if buckets.indices.contains(bucket) { buckets[bucket] += 1 }
        }
        #expect(times.count == 200)
        #expect((buckets.max() ?? 0) <= 25, "\(buckets)")
        #expect((buckets.min() ?? 0) >= 1, "\(buckets)")
    }
}
