import FreshetPipelines
import Testing
import WorldTestSupport

@Suite("A machine that meets captive portals", .ownThread)
struct PortalTests {
    private static let probed = "needs-network: {probe: 'http://probe.example/204'}"

    @Test("a hotel's portal: pipelines wait until a person logs in, nothing fails, and few probes are made")
    func hotel() throws {
        let machine = Machine([
            "pipelines/news.yaml": pipeline("news", "every: 15min, \(Self.probed)"),
            "pipelines/mail.yaml": pipeline("mail", "every: 15min, \(Self.probed)"),
        ])
        let portal = machine.place.internet.portal
        for name in ["news", "mail"] { machine.origin(name).answers(good) }
        try machine.boot()
        try machine.pass(.seconds(3600))
        // Both are checked together: one probe for two runs.
        #expect(portal.times == [0, 900, 1800, 2700, 3600])

        try machine.network(nil)
        try machine.pass(.seconds(1800))
        portal.answers(.redirects)
        for name in ["news", "mail"] { machine.origin(name).answers(.content("<html>log in</html>")) }
        try machine.network("hotel")
        let before = portal.times.count
        let starts = machine.witness.starts(of: "news").count
        try machine.pass(.seconds(1800))
        // 0, 1, 3, 7, 15, 31, 63, and once a minute.
        #expect((30...40).contains(portal.times.count - before), "\(portal.times.count - before)")
        #expect(machine.witness.starts(of: "news").count == starts)
        #expect(
            machine.status("news")?.activity == .waiting(Wait(.network, detail: NetworkProbe.scriptedRefusal)))

        portal.answers(.lets)
        for name in ["news", "mail"] { machine.origin(name).answers(good) }
        try machine.pass(.seconds(60))
        for name in ["news", "mail"] {
            #expect(machine.status(name)?.activity == .loaded)
            #expect(machine.status(name)?.freshness == .fresh)
            #expect(machine.witness.failures(of: name) == 0)
        }
        try machine.stop()
        #expect(portal.open == 0)
        #expect(machine.witness.errors == [])
    }

    @Test(
        "in any course a run starts only with a proof of its network that is at most 30 s old",
        arguments: 1...20 as ClosedRange<UInt64>)
    func courses(_ seed: UInt64) throws {
        var dice = Jitter(seed: seed)
        let names = ["a", "b", "c"]
        let keys = ["every: 5min, \(Self.probed)", "fresh-for: 0, \(Self.probed)", "every: 1min, \(Self.probed)"]
        let machine = Machine(
            Dictionary(uniqueKeysWithValues: zip(names, keys).map { ("pipelines/\($0).yaml", pipeline($0, $1)) }),
            seed: dice.next())
        let portal = machine.place.internet.portal
        for name in names { machine.origin(name).answers(.after(.seconds(1), good)) }
        try machine.boot()
        var changes: [Double] = []
        for _ in 0..<200 {
            switch Int.random(in: 0..<10, using: &dice) {
            case 0: portal.answers(.redirects)
            case 1: portal.answers(.hangs)
            case 2: portal.answers(.after(.seconds(3), .lets))
            case 3: portal.answers(.fails(RunFailure(.connection, "could not resolve probe.example")))
            case 4, 5: portal.answers(.lets)
            case 6:
                let name = ["home", "office"].randomElement(using: &dice)
                // A state that exists already is not another network, and begins no epoch.
                if name != machine.system.route { changes.append(machine.place.now) }
                try machine.network(name)
            case 7: try machine.network(nil)
            case 8: _ = try machine.refresh(names.randomElement(using: &dice) ?? "a")
            default:
                machine.sleep(.seconds(Int64.random(in: 1...600, using: &dice)))
                changes.append(machine.place.now)
                try machine.wake()
            }
            try machine.pass(.milliseconds(Int64.random(in: 0...90_000, using: &dice)))
        }
        for name in names {
            for start in machine.witness.starts(of: name) {
                let since = changes.last { $0 <= start } ?? 0
                #expect(
                    portal.proofs.contains { $0 >= since && $0 <= start && start - $0 <= 30 },
                    "\(name) started at \(start)")
            }
        }
        #expect(portal.mostOpen <= 1)
        portal.answers(.lets)
        try machine.network("home")
        try machine.pass(.seconds(600))
        for name in names { #expect(machine.status(name)?.activity == .loaded) }
        try machine.stop()
        #expect(portal.open == 0)
        #expect(machine.witness.errors == [])
    }
}
